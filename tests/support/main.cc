#include <gtest/gtest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  setenv("SAMEBYTES_TUNING", "off", 0);  // what the user tuned is no matter of the tests
  // Small arrays would never reach a kernel where the thread that asks for them does the work.
  setenv("SAMEBYTES_HOST_EXECUTION", "queued", 0);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
