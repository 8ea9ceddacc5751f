// The library keeps nothing large in static thread_local memory, which lies on the stack of every thread of a process:
// drivers and users have threads with small stacks.
#include <gtest/gtest.h>
#include <pthread.h>

#include <cstring>

#include "samebytes/samebytes.h"

namespace samebytes::testing {
namespace {

TEST(SmallStacks, a_thread_of_64_kilobytes_starts_beside_the_library) {
  const Engine engine;  // links all that it needs
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 64 << 10), 0);
  pthread_t thread;
  const int status = pthread_create(
      &thread, &attributes, [](void* argument) { return argument; }, nullptr);
  EXPECT_EQ(status, 0) << std::strerror(status);
  if (status == 0) pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

}  // namespace
}  // namespace samebytes::testing
