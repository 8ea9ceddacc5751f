#include "samebytes/checkpoint.h"

#include <charconv>
#include <cmath>

#include "graph/node.h"
#include "graph/segment.h"
#include "samebytes/error.h"

namespace samebytes {

namespace detail {

thread_local SegmentPtr open_segment;

bool is_within(const Node& node, const Segment* segment) {
  const Segment* s = node.segment.get();
  while (s && s != segment) s = s->outer.get();
  return s != nullptr;
}

bool is_open(const Segment* segment) {
  const Segment* s = open_segment.get();
  while (s && s != segment) s = s->outer.get();
  return s != nullptr;
}

}  // namespace detail

CheckpointScope::CheckpointScope() : outer_(detail::open_segment) {
  detail::open_segment = std::make_shared<const detail::Segment>(detail::Segment{outer_});
}
CheckpointScope::~CheckpointScope() { detail::open_segment = outer_; }

Array checkpoint_sequential(std::span<const std::function<Array(const Array&)>> functions, int segments,
                            const Array& x) {
  const auto count = static_cast<int>(functions.size());
  if (segments < 1 || segments > count)
    throw ArgumentError("checkpoint_sequential: segments must be from 1 to the number of functions, got " +
                        std::to_string(segments) + " for " + std::to_string(count));
  const int length = count / segments;
  Array y = x;
  int next = 0;
  for (int s = 0; s + 1 < segments; ++s) {
    const CheckpointScope scope;
    for (const int end = next + length; next < end; ++next) y = functions[static_cast<std::size_t>(next)](y);
  }
  for (; next < count; ++next) y = functions[static_cast<std::size_t>(next)](y);
  return y;
}

Checkpointing Checkpointing::every(std::int64_t blocks) {
  if (blocks < 1) throw ArgumentError("Checkpointing: a segment has at least 1 block, got " + std::to_string(blocks));
  Checkpointing result;
  result.blocks_ = blocks;
  return result;
}

Checkpointing Checkpointing::sqrt() {
  Checkpointing result;
  result.blocks_ = -1;
  return result;
}

Checkpointing Checkpointing::parse(std::string_view text) {
  if (text == "off") return off();
  if (text == "block") return every(1);
  if (text == "sqrt") return sqrt();
  std::int64_t blocks = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), blocks);
  if (error != std::errc() || end != text.data() + text.size() || blocks < 1)
    throw ArgumentError("Checkpointing: expected off, block, sqrt or a number of blocks above 0, got '" +
                        std::string(text) + "'");
  return every(blocks);
}

std::int64_t Checkpointing::length(std::int64_t blocks) const {
  if (blocks_ >= 0) return blocks_;
  return std::max<std::int64_t>(1, std::llround(std::sqrt(static_cast<double>(blocks))));
}

std::string Checkpointing::to_text() const {
  if (blocks_ == 0) return "off";
  if (blocks_ < 0) return "sqrt";
  return blocks_ == 1 ? "block" : std::to_string(blocks_);
}

}  // namespace samebytes
