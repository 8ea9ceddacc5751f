#include <gtest/gtest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  setenv("SAMEBYTES_TUNING", "off", 0);  // what the user tuned is no matter of the tests
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
