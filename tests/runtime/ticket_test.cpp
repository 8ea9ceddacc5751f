// Waiting for what the driver has not done yet.
#include "runtime/ticket.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <deque>
#include <memory>
#include <thread>

#include "runtime/rig.h"

namespace samebytes::detail {
namespace {

TEST(Ticket, a_wait_that_may_be_abandoned_sleeps_until_the_driver_calls) {
  Runtime runtime(options_of_device());
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

// Otherwise who waits would ask the same finished one again and again.
TEST(Ticket, one_that_was_given_up_is_not_waited_for_while_an_earlier_one_runs) {
  Runtime runtime(options_of_device());
  const cl::UserEvent never(runtime.device().context());
  std::deque<TicketPtr> queued;
  for (std::uint64_t number = 1; number <= 8; ++number) {
    const auto ticket = std::make_shared<Ticket>(number, "device", runtime.watchdog());
    ticket->set_weight(Ticket::kStep / 4);
    ticket->add(never, "op", 0);
    ticket->close();
    queued.push_back(ticket);
  }
  const TicketPtr chosen = first_to_wait_for(queued, 1);
  ASSERT_NE(chosen, nullptr);
  ASSERT_NE(chosen, queued.front());
  EXPECT_EQ(chosen->pending_queue(), 0);
  chosen->abandon(-1, "a test");
  EXPECT_EQ(first_to_wait_for(queued, 1), queued.front());
  EXPECT_EQ(chosen->pending_queue(), -1);
}

}  // namespace
}  // namespace samebytes::detail
