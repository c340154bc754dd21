#include "runtime/object_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/hash.h"
#include "schedules/cuda/object.h"

namespace sylvite {
namespace {

// An entry: a line of text, then the object. The line is frozen: "sylvite-object 1 SYMBOL BYTES SHA256\n".
constexpr off_t largest_entry = off_t{1} << 30;
constexpr std::string_view magic = "sylvite-object 1";

std::string header_of(const std::string& symbol, std::string_view object) {
  return fmt::format("{} {} {} {}\n", magic, symbol, object.size(), sha256_hex(object));
}

/// A file descriptor that closes itself.
class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] int get() const { return descriptor_; }
  [[nodiscard]] bool is_open() const { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

/// Empty when the calling user owns it and nobody else may write, else what is wrong.
std::string ownership_problem(const struct stat& status) {
  if (status.st_uid != ::geteuid()) return "is owned by another user";
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "can be written by other users";
  return "";
}

std::string system_message() {
  return std::strerror(errno);
}

/// Reads the rest of the file; false with errno on failure.
bool read_all(int descriptor, std::size_t size, std::string& bytes) {
  bytes.resize(size);
  std::size_t done = 0;
  while (done < size) {
    const ssize_t count = ::read(descriptor, bytes.data() + done, size - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  return true;
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

ObjectCache::ObjectCache(const std::string& folder) : folder_(folder) {
  if (folder_.empty()) return;
  std::error_code error;
  const std::filesystem::path path(folder_);
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (!error && ::mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST)
    error.assign(errno, std::generic_category());
  struct stat status{};
  if (error) {
    disable(fmt::format("object cache {} cannot be created: {}", folder_, error.message()));
  } else if (::stat(folder_.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
    disable(fmt::format("object cache {} is not a folder", folder_));
  } else if (const std::string problem = ownership_problem(status); !problem.empty()) {
    disable(fmt::format("object cache {} {}; make it yours with mode 0700, or choose another with cache.dir",
                        folder_, problem));
  }
}

void ObjectCache::disable(std::string reason) {
  warning_ = std::move(reason);
  folder_.clear();
}

std::string ObjectCache::path_of(const std::string& symbol) const {
  return folder_ + "/" + symbol + ".obj";
}

std::optional<std::string> ObjectCache::load(const std::string& symbol) {
  if (folder_.empty()) return std::nullopt;
  const std::string path = path_of(symbol);
  const auto miss = [&](const std::string& reason) {
    warning_ = fmt::format("cached object {} {}; it is compiled again", path, reason);
    return std::nullopt;
  };
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.is_open()) {
    if (errno != ENOENT) return miss("cannot be read: " + system_message());
    return std::nullopt;
  }
  struct stat status{};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return miss("is not a regular file");
  if (const std::string problem = ownership_problem(status); !problem.empty()) return miss(problem);
  if (status.st_size > largest_entry) return miss("is larger than any object");
  std::string bytes;
  if (!read_all(file.get(), static_cast<std::size_t>(status.st_size), bytes)) return miss("is cut short");
  const std::size_t line_end = bytes.find('\n');
  if (line_end == std::string::npos) return miss("has no header");
  const std::string header = bytes.substr(0, line_end + 1);
  bytes.erase(0, line_end + 1);
  if (header != header_of(symbol, bytes)) return miss("is damaged or foreign");
  if (is_cuda_object(bytes)) {
    try {
      (void)parse_cuda_object(bytes);
    } catch (const IoError& error) {
      return miss(fmt::format("cannot be loaded: {}", error.what()));
    }
  }
  (void)::futimens(file.get(), nullptr);  // used now, for prune_cache; a read-only disk does not matter
  return bytes;
}

void ObjectCache::store(const std::string& symbol, const std::string& object) {
  if (folder_.empty()) return;
  static std::atomic<int> sequence{0};
  const std::string path = path_of(symbol);
  const std::string temporary = fmt::format("{}.{}.{}.tmp", path, ::getpid(), sequence++);
  bool stored = false;
  {
    const File file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    stored =
        file.is_open() && write_all(file.get(), header_of(symbol, object)) && write_all(file.get(), object);
  }
  stored = stored && ::rename(temporary.c_str(), path.c_str()) == 0;
  has_stored_ = has_stored_ || stored;
  if (stored) return;
  warning_ = fmt::format("object cache: {} cannot be written: {}; the next run compiles it again", path,
                         system_message());
  ::unlink(temporary.c_str());
}

void ObjectCache::remove(const std::string& symbol) {
  if (!folder_.empty()) ::unlink(path_of(symbol).c_str());
}

}  // namespace sylvite
