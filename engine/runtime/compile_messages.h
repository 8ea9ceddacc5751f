// What a process and its compiler processes say to each other, over a socket: a length of eight bytes, then so many
// bytes of numbers and texts, in the order of put() and take() on both sides, which are builds of one source.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace samebytes::detail {

enum class CompileMessage : std::uint64_t { device, program, kernel };

// Moves `size` bytes by a call that may move fewer at a time; false where the other side is gone.
template <class Byte, class Call>
bool move_all(Byte* at, std::size_t size, const Call& call) {
  while (size > 0) {
    const ssize_t moved = call(at, size);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return false;
    at += moved;
    size -= static_cast<std::size_t>(moved);
  }
  return true;
}

class MessageWriter {
 public:
  void put(std::uint64_t number) { text_.append(reinterpret_cast<const char*>(&number), sizeof number); }
  void put(std::string_view text) {
    put(std::uint64_t{text.size()});
    text_ += text;
  }
  // False if the other side is gone; no signal comes.
  bool send_to(int socket) const {
    const std::uint64_t size = text_.size();
    return send_all(socket, &size, sizeof size) && send_all(socket, text_.data(), text_.size());
  }

 private:
  static bool send_all(int socket, const void* bytes, std::size_t size) {  // MSG_NOSIGNAL: no SIGPIPE
    return move_all(static_cast<const char*>(bytes), size,
                    [&](const char* at, std::size_t n) { return ::send(socket, at, n, MSG_NOSIGNAL); });
  }
  std::string text_;
};

class MessageReader {
 public:
  // Empty at the end, and where what came is no message.
  static std::optional<MessageReader> receive_from(int socket) {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 28;
    std::uint64_t size = 0;
    if (!receive_all(socket, &size, sizeof size) || size > kMost) return std::nullopt;
    MessageReader reader;
    reader.text_.resize(size);
    if (!receive_all(socket, reader.text_.data(), size)) return std::nullopt;
    return reader;
  }
  bool is_good() const { return is_good_; }  // nothing was taken that was not there
  std::uint64_t take() {
    std::uint64_t number = 0;
    if (is_good_ = is_good_ && text_.size() - at_ >= sizeof number; !is_good_) return 0;
    std::memcpy(&number, text_.data() + at_, sizeof number);
    at_ += sizeof number;
    return number;
  }
  std::string take_text() {
    const std::uint64_t size = take();
    if (is_good_ = is_good_ && text_.size() - at_ >= size; !is_good_) return {};
    at_ += size;
    return text_.substr(at_ - size, size);
  }

 private:
  static bool receive_all(int socket, void* bytes, std::size_t size) {
    return move_all(static_cast<char*>(bytes), size, [&](char* at, std::size_t n) { return ::recv(socket, at, n, 0); });
  }
  std::string text_;
  std::size_t at_ = 0;
  bool is_good_ = true;
};

}  // namespace samebytes::detail
