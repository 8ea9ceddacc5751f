// SummaryWriter: numbers of a run as TensorBoard's event files (`tensorboard --logdir DIR`), beside or instead of a log
// of one's own.
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
  // Makes the folder if need be, and a new file in it with the name that TensorBoard looks for
  // ("events.out.tfevents.SECONDS.HOST.PROCESS"). Throws IoError where that cannot be written.
  explicit SummaryWriter(const std::string& folder);

  // One point of the curve `tag`, such as "loss/train". Throws IoError for a full disk.
  void scalar(std::string_view tag, double value, std::int64_t step);
  // How values are spread, in buckets of equal width between the least and the largest. NaN and infinities are left
  // out.
  void histogram(std::string_view tag, std::span<const float> values, std::int64_t step, int buckets = 30);
  void text(std::string_view tag, std::string_view text, std::int64_t step);
  void flush();  // also done every two seconds of writing, and at the end
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
