#pragma once
// One GPU and what lives on it: memory, modules, streams, events, graphs. Owners are move-only and free what
// they hold; they must not outlive the process's use of the device. Calls throw CudaError.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cuda/driver.h"
#include "schedules/card.h"
#include "schedules/cuda/launch_spec.h"

namespace sylvite::cuda {

/// The first device that the driver shows (CUDA_VISIBLE_DEVICES chooses), with its primary context. Thread
/// safe.
class Device {
 public:
  /// Opened once per process. Throws UnsupportedError when there is no driver or no device.
  [[nodiscard]] static const Device& get();

  [[nodiscard]] const Card& card() const { return card_; }
  /// Every thread that makes calls does this first; costs less than a microsecond.
  void make_current() const { driver().context_set_current(context_); }

 private:
  Device();
  ContextHandle context_ = nullptr;
  Card card_;
};

/// The device is current while this lives; then what was current before, for callers who use other devices, too.
class CurrentDevice {
 public:
  CurrentDevice();
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  ContextHandle before_ = nullptr;
};

/// A handle that is destroyed by one driver function.
template <typename Handle, auto Destroy>
class Owner {
 public:
  Owner() = default;
  explicit Owner(Handle handle) : handle_(handle) {}
  ~Owner() { reset(); }
  Owner(Owner&& other) noexcept : handle_(std::exchange(other.handle_, Handle())) {}
  Owner& operator=(Owner&& other) noexcept {
    if (this != &other) {
      reset();
      handle_ = std::exchange(other.handle_, Handle());
    }
    return *this;
  }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  [[nodiscard]] Handle get() const { return handle_; }

 private:
  void reset() noexcept {
    if (handle_ != Handle()) (void)(driver().*Destroy).try_call(handle_);  // too late for an error
    handle_ = Handle();
  }
  Handle handle_ = Handle();
};

/// Device memory, 256-byte aligned, contents unspecified. None for 0 bytes.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  explicit DeviceMemory(std::size_t bytes);
  [[nodiscard]] DevicePointer address() const { return memory_.get(); }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  Owner<DevicePointer, &Driver::memory_free> memory_;
  std::size_t size_ = 0;
};

/// Page-locked host memory: copies from and to it run beside everything else.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  explicit PinnedMemory(std::size_t bytes);
  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(memory_.get()); }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  Owner<void*, &Driver::host_free> memory_;
  std::size_t size_ = 0;
};

/// A cubin, or PTX that the driver compiles.
class Module {
 public:
  Module() = default;
  /// Throws CompileError with the driver's log when the image does not load.
  explicit Module(const std::string& image);
  [[nodiscard]] FunctionHandle function(const std::string& name) const;

 private:
  Owner<ModuleHandle, &Driver::module_unload> module_;
};

/// One kernel launch with its arguments: a value, so that it can be made once and launched many times.
struct Launch {
  /// What a library launches on a stream; the rest is unused then.
  std::function<void(StreamHandle)> enqueue;
  FunctionHandle function = nullptr;
  LaunchShape shape;                              ///< with more than 48 KB of shared memory: see allow_shared
  std::vector<std::vector<std::byte>> arguments;  ///< the bytes of each, aligned for any scalar

  template <typename T>
  void add_argument(const T& value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    arguments.emplace_back(bytes.begin(), bytes.end());
  }
};
void launch(const Launch& launch, StreamHandle stream);
/// Lets a function use this much shared memory per block.
void allow_shared(FunctionHandle function, std::size_t bytes);

class Event {
 public:
  explicit Event(bool timing = true);
  void record(StreamHandle stream) { driver().event_record(event_.get(), stream); }
  void synchronize() const { driver().event_synchronize(event_.get()); }
  [[nodiscard]] EventHandle get() const { return event_.get(); }

 private:
  Owner<EventHandle, &Driver::event_destroy> event_;
};
/// REQUIRES both recorded and reached.
[[nodiscard]] double microseconds_between(const Event& start, const Event& end);

class Stream {
 public:
  Stream();
  [[nodiscard]] StreamHandle get() const { return stream_.get(); }
  void synchronize() const { driver().stream_synchronize(stream_.get()); }

 private:
  Owner<StreamHandle, &Driver::stream_destroy> stream_;
};

/// Does somebody capture the stream's work, to launch it later? Then calls that wait or allocate would break that.
[[nodiscard]] bool is_capturing(StreamHandle stream);
/// Queues a copy on the device.
void copy_bytes(DevicePointer to, DevicePointer from, std::size_t bytes, StreamHandle stream);

/// Work captured from a stream, to be launched as a whole.
class Graph {
 public:
  Graph() = default;
  /// `work` issues calls on the stream; they are recorded and not run.
  Graph(const Stream& stream, const std::function<void()>& work);
  void launch(StreamHandle stream) const { driver().graph_launch(exec_.get(), stream); }
  [[nodiscard]] bool is_empty() const { return exec_.get() == nullptr; }

 private:
  Owner<GraphExecHandle, &Driver::graph_exec_destroy> exec_;
};

}  // namespace sylvite::cuda
