// SummaryWriter: writes values of a run as TensorBoard event files (`tensorboard --logdir DIR`).
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace samebytes {

class SummaryWriter {
 public:
  // Makes the folder if necessary, and in it a new file with a name that TensorBoard recognises
  // ("events.out.tfevents.SECONDS.HOST.PROCESS"). Throws IoError if it cannot be written.
  explicit SummaryWriter(const std::string& folder);

  // Adds a point to the curve `tag`, such as "loss/train". Throws IoError if the disk is full.
  void scalar(std::string_view tag, double value, std::int64_t step);
  // The distribution of the values, in buckets of equal width between the smallest and the largest. Ignores NaN and
  // infinities.
  void histogram(std::string_view tag, std::span<const float> values, std::int64_t step, int buckets = 30);
  void text(std::string_view tag, std::string_view text, std::int64_t step);
  void flush();  // also happens while writing, every two seconds, and at the end
  const std::string& path() const { return path_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void write_summary(std::string_view value, std::int64_t step);
  void write_event(std::string_view event);

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  double flushed_at_ = 0;
};

}  // namespace samebytes
