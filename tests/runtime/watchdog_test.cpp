// Waits for devices that never answer, and calls of the driver that fail once.
#include "runtime/watchdog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "runtime/rig.h"
#include "samebytes/engine.h"
#include "samebytes/ops.h"

namespace samebytes::detail {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

RuntimeOptions impatient(double seconds) {
  RuntimeOptions options = options_of_device();
  options.stall_seconds = seconds;
  return options;
}

TEST(Watchdog, a_wait_for_a_silent_device_ends_and_names_what_is_pending) {
  const auto start = std::chrono::steady_clock::now();
  Runtime runtime(impatient(0.3));
  const cl::UserEvent never(runtime.device().context());
  Ticket ticket(1, "the device", runtime.watchdog());
  ticket.add(never, "matmul", 0);
  ticket.add(never, "softmax", 0);
  ticket.close();
  EXPECT_THAT(
      message_of<DeviceError>([&] { ticket.wait(); }),
      HasSubstr("matmul: the device was given up: the device (pending: 2 commands, the first of matmul) has not "
                "answered for 0.3 s (EngineOptions::stall_seconds)"));
  EXPECT_TRUE(ticket.is_abandoned());
  Ticket next(2, "the device", runtime.watchdog());
  next.add(never, "add", 0);
  next.close();
  EXPECT_THAT(message_of<DeviceError>([&] { next.wait(); }), HasSubstr("add: ")) << "nobody waits a second time";
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

// As by Ctrl-Z and fg, or a debugger.
TEST(Watchdog, a_process_that_was_stopped_has_not_waited_meanwhile) {
  const Watchdog watchdog(1.5);
  const auto start = Watchdog::Clock::now();
  const pid_t stopped = ::getpid(), other = ::fork();
  if (other == 0) {
    ::kill(stopped, SIGSTOP);
    ::usleep(2'500'000);
    ::kill(stopped, SIGCONT);
    ::_exit(0);
  }
  ::waitpid(other, nullptr, 0);
  EXPECT_FALSE(watchdog.is_stalled(start));
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    static_cast<void>(watchdog.is_stalled(start));
  }
  EXPECT_TRUE(watchdog.is_stalled(start)) << "waits that look count";
}

TEST(Watchdog, every_kind_of_wait_sees_the_end_of_what_it_waits_for_and_ends_by_itself) {
  Runtime runtime(options_of_device());
  for (const Waiting waiting : {Waiting::rings, Waiting::looks, Waiting::naps}) {
    Watchdog watchdog(0.2);
    watchdog.set_waiting(waiting);
    cl::UserEvent later(runtime.device().context());
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      later.setStatus(CL_COMPLETE);
    });
    EXPECT_NO_THROW(watchdog.wait_for(later(), "clEnqueueNDRangeKernel", "a wait", "the device"));
    other.join();
    const cl::UserEvent never(runtime.device().context());
    EXPECT_THROW(watchdog.wait_for(never(), "clEnqueueNDRangeKernel", "a wait", "the device"), DeviceError);
  }
}

TEST(Watchdog, an_engine_whose_device_hangs_says_so_and_can_be_destroyed) {
  EngineOptions options{.stall_seconds = 0.3, .host_execution = HostExecution::off};
  const RuntimeOptions own = options_of_device();
  options.device = own.device;
  if (own.force_mode) options.memory = own.mode;
  Engine engine(options);
  const EngineScope scope(engine);
  Array x = ones({4}).eval();
  engine.wait();
  faults().faulty_device = 0;
  faults().launches_before_fault = 0;
  faults().device_fault = DeviceFault::hang;
  Array y = exp(x);
  EXPECT_THAT(message_of<DeviceError>([&] {
                y.eval();
                y.wait();
              }),
              AllOf(HasSubstr("exp"), HasSubstr("has not answered for 0.3 s")));
  faults().device_fault = DeviceFault::none;
  EXPECT_THAT(message_of<DeviceError>([&] { ones({1 << 20}).eval(); }), HasSubstr("has not answered"));
}

TEST(Watchdog, negative_seconds_are_refused) {
  EXPECT_THAT(message_of<ArgumentError>([] { Runtime runtime(impatient(-1)); }),
              HasSubstr("stall_seconds must be 0 or more, got -1"));
}

TEST(Watchdog, a_call_that_fails_is_made_again_and_counted) {
  Watchdog watchdog;
  int calls = 0;
  EXPECT_EQ(watchdog.call("clFlush", "device", [&] { return ++calls < 3 ? CL_OUT_OF_RESOURCES : CL_SUCCESS; }),
            CL_SUCCESS);
  EXPECT_EQ(calls, 3);
  ASSERT_EQ(watchdog.recoveries().size(), 1u);
  EXPECT_EQ(watchdog.recoveries()[0].call, "clFlush");
  EXPECT_EQ(watchdog.recoveries()[0].status, "CL_OUT_OF_RESOURCES");
  EXPECT_EQ(watchdog.call("clFlush", "device", [] { return CL_INVALID_VALUE; }), CL_INVALID_VALUE);
  EXPECT_EQ(watchdog.recoveries().size(), 1u);
}

// An error of a wait is no word about the command: only the event says whether it has ended.
TEST(Watchdog, a_failed_command_is_named_with_its_call) {
  Runtime runtime(options_of_device());
  const cl::UserEvent event(runtime.device().context());
  ASSERT_EQ(cl::UserEvent(event).setStatus(CL_OUT_OF_RESOURCES), CL_SUCCESS);
  EXPECT_THAT(message_of<DeviceError>(
                  [&] { runtime.watchdog()->wait_for(event(), "clEnqueueReadBuffer", "transfer", "the device"); }),
              HasSubstr("transfer: clEnqueueReadBuffer failed on the device: CL_OUT_OF_RESOURCES"));
}

}  // namespace
}  // namespace samebytes::detail
