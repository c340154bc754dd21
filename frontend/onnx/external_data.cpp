#include "frontend/onnx/external_data.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/error.h"

namespace sylvite {

struct ExternalData::Mapping {
  void* data = nullptr;
  std::int64_t size = 0;

  Mapping(void* mapped, std::int64_t bytes) : data(mapped), size(bytes) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (data != nullptr) munmap(data, static_cast<std::size_t>(size));
  }
};

namespace {

/// A file descriptor closed at the end of its scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }
  void reset(int fd) {
    close();
    fd_ = fd;
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  void close() const {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd_;
};

/// The components of a relative path; throws ModelError for what could leave the folder.
std::vector<std::string> split_location(const std::string& location, const std::string& what) {
  const auto refuse = [&](const char* why) {
    throw ModelError("{}: external data '{}' {}; it must be a plain file in the model's folder", what,
                     location, why);
  };
  if (location.empty()) refuse("has no name");
  if (location.front() == '/') refuse("is an absolute path");
  if (location.find('\0') != std::string::npos) refuse("holds a zero byte");
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= location.size()) {
    const std::size_t end = std::min(location.find('/', begin), location.size());
    const std::string part = location.substr(begin, end - begin);
    if (part == "..") refuse("leaves the folder");
    if (!part.empty() && part != ".") parts.push_back(part);
    begin = end + 1;
  }
  if (parts.empty()) refuse("names no file");
  return parts;
}

void check_plain_file(int fd, const std::string& path, const std::string& what, struct stat& status) {
  if (fstat(fd, &status) != 0) throw IoError("{}: cannot inspect '{}': {}", what, path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) throw ModelError("{}: external data '{}' is not a regular file", what, path);
}

}  // namespace

DataFolder folder_of_model(const std::string& path) {
  namespace fs = std::filesystem;
  const std::string folder = fs::path(path).parent_path().string();
  DataFolder result{folder.empty() ? "." : folder};
  std::error_code error;
  if (!fs::is_symlink(path, error)) return result;
  const fs::path target = fs::canonical(path, error);
  if (!error) result.linked = target.parent_path().string();
  return result;
}

bool ExternalData::exists(const std::string& location) const {
  if (folder_.path.empty() || location.empty()) return false;
  struct stat status{};
  const bool is_missing = lstat(path_of(location).c_str(), &status) != 0 && errno == ENOENT;
  return !is_missing || location.front() == '/' || location.find("..") != std::string::npos;
}

/// What a location behind links is in the end; "" when links are not followed there.
std::string ExternalData::linked_file(const std::string& location) const {
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(path_of(location), error);
  const bool is_followed = follow_links_ || (!folder_.linked.empty() && file.parent_path() == folder_.linked);
  return error || !is_followed ? "" : file.string();
}

std::shared_ptr<const ExternalData::Mapping> ExternalData::open(const std::string& location,
                                                                const std::string& what) const {
  if (const auto found = mappings_.find(location); found != mappings_.end()) return found->second;
  const std::vector<std::string> parts = split_location(location, what);
  if (folder_.path.empty())
    throw ModelError("{}: external data '{}' needs a model folder, and none is given", what, location);
  Descriptor fd(::open(folder_.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (std::size_t i = 0; i < parts.size() && fd.get() >= 0; ++i) {
    const int kind = i + 1 < parts.size() ? O_DIRECTORY : O_NONBLOCK;  // a FIFO must not block the open
    fd.reset(openat(fd.get(), parts[i].c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | kind));
  }
  if (fd.get() < 0 && (errno == ELOOP || errno == ENOTDIR)) {
    const std::string file = linked_file(location);
    if (file.empty()) {
      throw ModelError(
          "{}: external data '{}' is behind a symbolic link, and may not be what the model's folder holds; "
          "--set import.follow_links=true reads it",
          what, location);
    }
    fd.reset(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  }
  if (fd.get() < 0) {
    throw IoError("{}: cannot open external data '{}' in '{}': {}", what, location, folder_.path,
                  std::strerror(errno));
  }
  struct stat status{};
  check_plain_file(fd.get(), location, what, status);
  if (status.st_nlink != 1 && !follow_links_) {
    throw ModelError(
        "{}: external data '{}' has {} hard links, and may not be the model's own; copy the file, or give "
        "--set import.follow_links=true",
        what, location, status.st_nlink);
  }
  void* data = nullptr;
  if (status.st_size > 0) {
    data = mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (data == MAP_FAILED) throw IoError("{}: cannot map '{}': {}", what, location, std::strerror(errno));
  }
  return mappings_[location] = std::make_shared<const Mapping>(data, status.st_size);
}

ExternalData::Bytes ExternalData::map(const ExternalRange& range, std::int64_t size,
                                      const std::string& what) const {
  const std::shared_ptr<const Mapping> mapping = open(range.location, what);
  if (range.length && *range.length != size)
    throw ModelError("{}: external data has {} bytes, its dims need {}", what, *range.length, size);
  if (range.offset < 0 || range.offset > mapping->size || size > mapping->size - range.offset) {
    throw ModelError("{}: {} bytes from byte {} on lie outside external data '{}' of {} bytes", what, size,
                     range.offset, range.location, mapping->size);
  }
  return {mapping, static_cast<const std::byte*>(mapping->data) + range.offset};
}

}  // namespace sylvite
