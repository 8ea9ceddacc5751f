#include "cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/text.h"
#include "samebytes/engine.h"

namespace samebytes::cli {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(200);
constexpr double kRedrawSeconds = std::chrono::duration<double>(kRedraw).count();
constexpr auto kPlainPause = std::chrono::seconds(10);
constexpr int kLongestBar = 40;
constexpr int kShortestBar = 8;
constexpr int kMovingCells = 4;  // of a bar that does not know the end
constexpr int kUsualWidth = 80;

bool has_unicode() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view text = value;
    return text.find("UTF-8") != text.npos || text.find("utf8") != text.npos || text.find("UTF8") != text.npos;
  }
  return false;
}

bool goes_to_terminal(std::FILE* stream) {
  const char* kind = std::getenv("TERM");
  return isatty(fileno(stream)) != 0 && (kind == nullptr || std::string_view(kind) != "dumb");
}

int terminal_width(std::FILE* stream) {
  winsize size = {};
  if (ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return kUsualWidth;
}

std::string bar(double fraction, int cells, bool unicode) {
  const double full = std::clamp(fraction, 0.0, 1.0) * cells;
  const auto whole = static_cast<int>(full);
  std::string text;
  for (int i = 0; i < whole; ++i) text += unicode ? "━" : "#";
  if (whole < cells) {
    text += unicode ? (full - whole >= 0.5 ? "╸" : " ") : "-";
    for (int i = whole + 1; i < cells; ++i) text += unicode ? " " : "-";
  }
  return text;
}

// The parts after the bar, the most wanted first.
std::vector<std::string> facts(const ProgressState& state) {
  std::vector<std::string> parts;
  if (std::isfinite(state.loss)) parts.push_back(fmt::format("loss {:.4f}", state.loss));
  if (state.samples_per_second > 0) parts.push_back(count_text(state.samples_per_second) + " samples/s");
  if (std::isfinite(state.seconds_left)) parts.push_back(duration_text(state.seconds_left) + " left");
  if (std::isfinite(state.grad_norm)) parts.push_back(fmt::format("grad norm {:.3g}", state.grad_norm));
  return parts;
}

}  // namespace

std::string progress_line(const ProgressState& state, int width, bool unicode) {
  const double fraction = state.total > 0 ? static_cast<double>(state.done) / static_cast<double>(state.total) : 0;
  const std::string percent = fmt::format("{:3.0f} %", std::floor(100 * fraction));
  std::vector<std::string> parts = facts(state);
  const auto length = [&] {
    std::size_t sum = state.title.size() + 2 + percent.size();
    for (const std::string& part : parts) sum += 2 + part.size();
    return static_cast<int>(sum);
  };
  while (!parts.empty() && length() + kShortestBar > width) parts.pop_back();
  const int cells = std::min(kLongestBar, width - length());
  std::string line = state.title + " ";
  if (cells >= kShortestBar) line += bar(fraction, cells, unicode);
  line += " " + percent;
  for (const std::string& part : parts) line += "  " + part;
  return line;
}

std::string plain_line(const ProgressState& state) {
  std::string line = fmt::format("step {}/{}  {}", state.done, state.total, state.title);
  for (const std::string& part : facts(state)) line += "  " + part;
  return line;
}

std::string waiting_line(const std::string& what, double seconds, const Counted& counted, int width, bool unicode) {
  std::string tail = "  " + duration_text(seconds);
  if (counted.total > 0)
    tail += fmt::format("  {}/{}", counted.done, counted.total);
  else if (counted.done > 0)
    tail += fmt::format("  {} so far", counted.done);
  const int cells = std::min(kLongestBar / 2, width - static_cast<int>(what.size() + tail.size()) - 1);
  if (cells < kShortestBar) return what + tail;
  if (counted.total > 0)
    return what + " " + bar(static_cast<double>(counted.done) / static_cast<double>(counted.total), cells, unicode) +
           tail;
  const int place = static_cast<int>(seconds / kRedrawSeconds) % cells;
  std::string moving;
  for (int i = 0; i < cells; ++i)
    moving += (i - place + cells) % cells < kMovingCells ? (unicode ? "━" : "#") : (unicode ? " " : "-");
  return what + " " + moving + tail;
}

std::function<Counted()> compiled_on(const Engine& engine) {
  return [&engine] {
    const CompileReport report = engine.compiles();
    return Counted{static_cast<std::int64_t>(report.done), static_cast<std::int64_t>(report.asked)};
  };
}

Progress::Progress(std::FILE* stream, bool quiet)
    : stream_(stream),
      quiet_(quiet),
      terminal_(goes_to_terminal(stream)),
      unicode_(has_unicode()),
      next_(Clock::now() + (terminal_ ? kRedraw : std::chrono::milliseconds(kPlainPause))) {}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    clear();
    is_over_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

double Progress::seconds_between() const {
  return std::chrono::duration<double>(terminal_ ? kRedraw : std::chrono::milliseconds(kPlainPause)).count();
}

bool Progress::is_due() const { return !quiet_ && Clock::now() >= next_; }

void Progress::draw(const ProgressState& state) {
  if (quiet_) return;
  const std::lock_guard lock(mutex_);
  what_.clear();
  next_ = Clock::now() + (terminal_ ? kRedraw : std::chrono::milliseconds(kPlainPause));
  if (terminal_) {
    // One column stays free: writing into the last one would wrap on some terminals.
    fmt::print(stream_, "\r{}\033[K", progress_line(state, terminal_width(stream_) - 1, unicode_));
    drawn_ = true;
  } else {
    fmt::print(stream_, "{}\n", plain_line(state));
  }
  std::fflush(stream_);
}

void Progress::wait_for(std::string what, std::function<Counted()> count) {
  begin_wait(std::move(what), std::move(count), true);
}

void Progress::wait_behind_bar(std::string what) { begin_wait(std::move(what), {}, false); }

void Progress::begin_wait(std::string what, std::function<Counted()> count, bool at_once) {
  if (quiet_ || !has_waits_) return;
  const std::lock_guard lock(mutex_);
  what_ = std::move(what);
  count_ = std::move(count);
  since_ = Clock::now();
  if (terminal_ && !what_.empty() && (at_once || !drawn_)) draw_wait();
  try {
    if (!thread_.joinable()) thread_ = std::thread([this] { keep_drawing(); });
  } catch (const std::system_error&) {  // what is waited for is not worth an error
  }
  changed_.notify_one();
}

void Progress::draw_wait() {
  const double seconds = std::chrono::duration<double>(Clock::now() - since_).count();
  const Counted counted = count_ ? count_() : Counted{};
  if (terminal_) {
    fmt::print(stream_, "\r{}\033[K", waiting_line(what_, seconds, counted, terminal_width(stream_) - 1, unicode_));
    drawn_ = true;
  } else {
    fmt::print(stderr, "{}\n", waiting_line(what_, seconds, counted, 0, false));
  }
  std::fflush(stream_);
}

void Progress::keep_drawing() {
  std::unique_lock lock(mutex_);
  while (!is_over_) {
    const Clock::time_point since = since_;
    changed_.wait_for(lock, terminal_ ? kRedraw : std::chrono::milliseconds(kPlainPause));
    if (!is_over_ && !what_.empty() && since == since_) draw_wait();
  }
}

void Progress::say(const std::string& line) {
  if (quiet_) return;
  const std::lock_guard lock(mutex_);
  clear();
  fmt::print(stream_, "{}\n", line);
  std::fflush(stream_);
}

void Progress::erase() {
  const std::lock_guard lock(mutex_);
  clear();
}

void Progress::clear() {
  what_.clear();
  count_ = nullptr;
  if (!drawn_) return;
  fmt::print(stream_, "\r\033[K");
  std::fflush(stream_);
  drawn_ = false;
}

}  // namespace samebytes::cli
