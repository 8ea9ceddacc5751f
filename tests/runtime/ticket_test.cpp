// Waiting for what the driver has not done yet.
#include "runtime/ticket.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <thread>

#include "runtime/rig.h"

namespace samebytes::detail {
namespace {

TEST(Ticket, a_wait_that_may_be_abandoned_sleeps_until_the_driver_calls) {
  Runtime runtime(options_for(MemoryMode::fine));
  cl::UserEvent event(runtime.device().context());
  Ticket ticket(1, "device", runtime.watchdog());
  ticket.reserve(1);
  ticket.add(event, "op", 0);
  ticket.close();
  long woken = 0;
  std::thread waiting([&] {
    rusage before{}, after{};
    getrusage(RUSAGE_THREAD, &before);
    ticket.wait();
    getrusage(RUSAGE_THREAD, &after);
    woken = after.ru_nvcsw - before.ru_nvcsw;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(event.setStatus(CL_COMPLETE), CL_SUCCESS);
  waiting.join();
  EXPECT_TRUE(ticket.is_done());
  EXPECT_LE(woken, 120) << "a look every 5 ms, and one when the driver calls";
}

}  // namespace
}  // namespace samebytes::detail
