#pragma once
// Whole messages over a stream socket: four bytes of length, little-endian, then the bytes.

#include <optional>
#include <string>
#include <string_view>

namespace sylvite {

/// One end of a socket. Sending blocks; receiving is in pieces, as they come. Thread safety: none.
class MessageChannel {
 public:
  static constexpr std::size_t max_bytes = std::size_t{64} << 20;  ///< of one message; more is a broken peer

  MessageChannel() = default;
  explicit MessageChannel(int descriptor) : descriptor_(descriptor) {}  ///< takes ownership
  ~MessageChannel();
  MessageChannel(MessageChannel&& other) noexcept;
  MessageChannel& operator=(MessageChannel&& other) noexcept;

  [[nodiscard]] int descriptor() const { return descriptor_; }
  /// False when the other end is gone, or does not read within the socket's send timeout, if it has one.
  [[nodiscard]] bool send(std::string_view message);
  /// Reads what has come, waiting up to `timeout` seconds for a whole message (0: no wait; negative: for
  /// ever).
  [[nodiscard]] std::optional<std::string> receive(double timeout);
  /// The other end closed, or broke the format; no more messages will come.
  [[nodiscard]] bool closed() const { return closed_; }

 private:
  [[nodiscard]] std::optional<std::string> take_message();
  void read_available();

  int descriptor_ = -1;
  bool closed_ = false;
  std::string received_;  ///< bytes not yet given out
};

}  // namespace sylvite
