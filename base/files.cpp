#include "base/files.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/error.h"

namespace sylvite {
namespace {

/// Closes on scope exit.
struct Descriptor {
  int number = -1;
  explicit Descriptor(int opened) : number(opened) {}
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
};

[[noreturn]] void fail(std::string_view what, const std::string& path) {
  throw IoError("cannot {} {}: {}", what, path, std::strerror(errno));
}

void write_all(int file, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write", path);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void write_temporary(std::string& temporary, std::string_view bytes, const std::string& path) {
  const Descriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (file.number < 0) fail("write", path);
  try {
    write_all(file.number, bytes, path);
    if (::fchmod(file.number, 0644) != 0 || ::fsync(file.number) != 0) fail("write", path);
  } catch (const IoError&) {
    ::unlink(temporary.c_str());
    throw;
  }
}

/// The home folder of the user in the system's list; "" when there is none.
std::string listed_home() {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 16384> buffer{};
  const int failed = ::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found);
  return failed == 0 && found != nullptr && found->pw_dir[0] == '/' ? found->pw_dir : "";
}

}  // namespace

std::string read_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number < 0) fail("read", path);
  struct stat status{};
  if (::fstat(file.number, &status) != 0) fail("read", path);
  if (!S_ISREG(status.st_mode)) throw IoError("cannot read {}: not a regular file", path);
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::read(file.number, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("read", path);
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  bytes.resize(done);
  return bytes;
}

void write_file(const std::string& path, std::string_view bytes) {
  std::string temporary = path + ".XXXXXX";
  write_temporary(temporary, bytes, path);
  if (::rename(temporary.c_str(), path.c_str()) == 0) return;
  const int reason = errno;
  ::unlink(temporary.c_str());
  errno = reason;
  fail("write", path);
}

void check_writable(const std::string& path) {
  std::string temporary = path + ".XXXXXX";
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode))
    throw IoError("cannot write {}: it is a folder", path);
  write_temporary(temporary, "", path);
  ::unlink(temporary.c_str());
}

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw IoError("cannot create the folder {}: {}", path, error.message());
}

CacheFolder user_cache_folder() {
  const char* const xdg = std::getenv("XDG_CACHE_HOME");
  if (xdg != nullptr && xdg[0] == '/') return {std::string(xdg) + "/sylvite", ""};
  const char* const home = std::getenv("HOME");
  if (home != nullptr && home[0] != '\0') return {std::string(home) + "/.cache/sylvite", ""};
  if (const std::string listed = listed_home(); !listed.empty()) {
    const std::string path = listed + "/.cache/sylvite";
    return {path, fmt::format("HOME is not set; the cache and the database are in {}", path)};
  }
  return {
      "",
      "no home folder: neither compiled kernels nor winners are kept; set HOME or XDG_CACHE_HOME, or give "
      "--cache-dir and --db"};
}

}  // namespace sylvite
