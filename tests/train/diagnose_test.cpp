// A program of one's own has the doctor look at the log that its Session wrote.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/files.h"
#include "train/session_runs.h"

namespace samebytes::train {
namespace {

class DiagnoseTest : public testing::OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(DiagnoseTest);

TEST_P(DiagnoseTest, finds_why_a_session_failed) {
  const testing::TemporaryFolder folder;
  const std::string path = folder / "run.jsonl";
  SessionOptions options;
  options.make_optimizer = [](std::span<const Array> parameters) -> OptimizerPtr {
    return std::make_unique<optim::Sgd>(parameters, optim::SgdOptions{.rate = 1e12});
  };
  options.log = std::make_shared<RunLog>(path);
  TrainedNet run(engine(), options);
  EXPECT_THROW(run->fit(2), StepError);

  const doctor::Diagnosis diagnosis = doctor::diagnose(path);
  EXPECT_GT(diagnosis.rules, 10U);
  EXPECT_NE(diagnosis.heading.find(path), std::string::npos);
  ASSERT_FALSE(diagnosis.findings.empty());
  const doctor::Finding& first = diagnosis.findings[0];
  EXPECT_EQ(first.severity, doctor::Severity::failure);
  EXPECT_EQ(first.file, path);
  EXPECT_GT(first.line, 0);
  EXPECT_NE(first.seen.find("the loss is"), std::string::npos) << first.seen;
  EXPECT_FALSE(first.actions.empty());

  EXPECT_THROW(doctor::diagnose(folder / "missing.jsonl"), IoError);
  testing::put(folder / "text", "no log\n");
  EXPECT_THROW(doctor::diagnose(folder / "text"), IoError);
}

}  // namespace
}  // namespace samebytes::train
