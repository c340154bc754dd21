#include "autotune/message.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/clock.h"

namespace sylvite {

namespace {

constexpr std::size_t header_bytes = 4;

std::string make_header(std::size_t size) {
  std::string header(header_bytes, '\0');
  for (std::size_t i = 0; i < header_bytes; ++i) header[i] = static_cast<char>((size >> (8 * i)) & 0xff);
  return header;
}

std::size_t parse_header(std::string_view bytes) {
  std::size_t size = 0;
  for (std::size_t i = 0; i < header_bytes; ++i)
    size |= static_cast<std::size_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return size;
}

bool send_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t sent = ::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

int poll_milliseconds(double timeout, double start) {
  if (timeout < 0) return -1;
  double left = timeout - (steady_seconds() - start);
  return left <= 0 ? 0 : static_cast<int>(left * 1000) + 1;
}

}  // namespace

MessageChannel::~MessageChannel() {
  if (descriptor_ >= 0) close(descriptor_);
}

MessageChannel::MessageChannel(MessageChannel&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      closed_(other.closed_),
      received_(std::move(other.received_)) {}

MessageChannel& MessageChannel::operator=(MessageChannel&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  closed_ = other.closed_;
  received_ = std::move(other.received_);
  return *this;
}

bool MessageChannel::send(std::string_view message) {
  return send_all(descriptor_, make_header(message.size())) && send_all(descriptor_, message);
}

std::optional<std::string> MessageChannel::receive(double timeout) {
  const double start = steady_seconds();
  for (;;) {
    if (auto message = take_message()) return message;
    if (closed_) return std::nullopt;
    pollfd waiting{descriptor_, POLLIN, 0};
    int ready = poll(&waiting, 1, poll_milliseconds(timeout, start));
    if (ready == 0) return std::nullopt;
    if (ready > 0)
      read_available();
    else if (errno != EINTR)
      closed_ = true;
  }
}

std::optional<std::string> MessageChannel::take_message() {
  if (received_.size() < header_bytes) return std::nullopt;
  std::size_t size = parse_header(received_);
  if (size > max_bytes) {
    closed_ = true;
    return std::nullopt;
  }
  if (received_.size() < header_bytes + size) return std::nullopt;
  std::string message = received_.substr(header_bytes, size);
  received_.erase(0, header_bytes + size);
  return message;
}

void MessageChannel::read_available() {
  std::array<char, 1 << 16> buffer{};
  ssize_t count = recv(descriptor_, buffer.data(), buffer.size(), 0);
  if (count > 0)
    received_.append(buffer.data(), static_cast<std::size_t>(count));
  else if (count == 0 || errno != EINTR)
    closed_ = true;
}

}  // namespace sylvite
