// fork(): a child has none of the threads that an engine of its parent needs, and is told so in place of waiting.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <thread>

#include "samebytes/samebytes.h"
#include "support/devices.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;

constexpr auto kLimit = std::chrono::seconds(60);

// What `body` returns in a child of this process; "hangs" where it does not return in time.
std::string in_child(const std::function<std::string()>& body) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    std::string text;
    try {
      text = body();
    } catch (const std::exception& error) {
      text = std::string("threw ") + error.what();
    }
    static_cast<void>(!::write(ends[1], text.data(), text.size()));
    ::_exit(0);
  }
  ::close(ends[1]);
  const auto end = std::chrono::steady_clock::now() + kLimit;
  int status = 0;
  bool has_ended = false;
  while (!has_ended && std::chrono::steady_clock::now() < end) {
    has_ended = ::waitpid(child, &status, WNOHANG) == child;
    if (!has_ended) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (!has_ended) {
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
  }
  std::string text;
  char piece[512];
  for (ssize_t n; (n = ::read(ends[0], piece, sizeof piece)) > 0;) text.append(piece, static_cast<std::size_t>(n));
  ::close(ends[0]);
  if (!has_ended) return "hangs";
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? text : "ended badly after: " + text;
}

std::string said(const std::function<void()>& use) {
  try {
    use();
  } catch (const ArgumentError& error) {
    return std::string("an ArgumentError: ") + error.what();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

class ForkTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(ForkTest);

TEST_P(ForkTest, a_child_is_told_that_the_engine_stayed_in_its_parent) {
  const Array a = array({1, 2, 3}), b = (a + 1.0).eval();
  const Array lazy = a * 2.0;
  const std::string here = std::to_string(::getpid());
  const std::vector<std::function<void()>> uses{
      [&] { lazy.eval(); },          [&] { b.to_vector<float>(); },
      [&] { a.host<float>(); },      [&] { static_cast<void>(a + b); },
      [&] { zeros({2}).value(); },   [&] { gradients(sum(lazy), std::vector<Array>{a}); },
      [&] { engine().wait(); },      [&] { engine().memory(); },
      [&] { const Engine another; },
  };
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const std::string text = in_child([&] { return said(uses[i]); });
    EXPECT_THAT(text, HasSubstr(" in process " + here + ", before fork(); process ")) << i;
    EXPECT_THAT(text, HasSubstr("exec")) << i;
  }
  EXPECT_EQ(lazy.to_vector<float>(), (std::vector<float>{2, 4, 6}));  // the parent goes on
}

TEST_P(ForkTest, destructors_in_a_child_do_not_wait) {
  auto own = make_engine(GetParam());
  const EngineScope scope(*own);
  auto net = std::make_unique<nn::Sequential>(nn::Linear({.in = 4, .out = 4}), nn::Relu());
  auto adam = std::make_unique<optim::Adam>(net->parameters(), optim::AdamOptions{});
  adam->step(sum((*net)(ones({2, 4}))));
  auto kept = std::make_unique<Array>((*net)(ones({2, 4})));
  kept->eval();
  const std::string text = in_child([&] {
    kept.reset();
    adam.reset();
    net.reset();
    own.reset();
    return "left";
  });
  EXPECT_EQ(text, "left");
  EXPECT_EQ(kept->to_vector<float>().size(), 8u);
}

TEST_P(ForkTest, arrays_that_outlived_their_engine_leave_a_child_in_peace) {
  auto own = make_engine(GetParam());
  auto kept = std::make_unique<Array>();
  {
    const EngineScope scope(*own);
    *kept = ones({4}) + 1.0;
    kept->eval();
  }
  own.reset();
  EXPECT_EQ(in_child([&] {
              kept.reset();
              return "left";
            }),
            "left");
}

TEST_P(ForkTest, a_loader_says_it_and_leaves_without_its_workers) {
  const auto set = data::generate(40, {{"x", Shape{2}}}, [](std::int64_t index, std::span<const data::Field> dst) {
    dst[0].as<float>()[0] = dst[0].as<float>()[1] = static_cast<float>(index);
  });
  auto loader = std::make_unique<data::Loader>(engine(), set, data::LoaderOptions{.batch = 4, .workers = 2});
  auto batch = std::make_unique<data::Batch>(*loader->begin());
  EXPECT_THAT(in_child([&] { return said([&] { loader->begin(); }); }), HasSubstr("loader: it was made in process "));
  EXPECT_EQ(in_child([&] {
              batch.reset();
              loader.reset();
              return "left";
            }),
            "left");
  std::int64_t steps = 0;
  for (const data::Batch& one : *loader) steps += one.samples() == 4;
  EXPECT_EQ(steps, 10);
}

}  // namespace
}  // namespace samebytes::testing
