#include "runtime/cuda/device.h"

#include <algorithm>
#include <array>

namespace sylvite::cuda {
namespace {

int attribute(DeviceNumber device, DeviceAttribute wanted) {
  int value = 0;
  driver().device_attribute(&value, wanted, device);
  return value;
}

Card read_card(DeviceNumber device) {
  Card card;
  std::array<char, 128> name{};
  driver().device_name(name.data(), static_cast<int>(name.size() - 1), device);
  card.name = name.data();
  card.capability = 10 * attribute(device, DeviceAttribute::capability_major) +
                    attribute(device, DeviceAttribute::capability_minor);
  driver().driver_version(&card.driver);
  card.multiprocessors = attribute(device, DeviceAttribute::multiprocessors);
  card.shared_bytes = attribute(device, DeviceAttribute::shared_bytes_per_block);
  card.l2_bytes = attribute(device, DeviceAttribute::l2_bytes);
  return card;
}

}  // namespace

Device::Device() {
  int count = 0;
  driver().device_count(&count);
  if (count == 0) throw UnsupportedError("the CUDA driver shows no device");
  DeviceNumber device = 0;
  driver().device_get(&device, 0);
  card_ = read_card(device);
  driver().primary_context_retain(&context_, device);  // kept: modules and memory may live until the very end
  make_current();
}

const Device& Device::get() {
  static const Device device;
  return device;
}

CurrentDevice::CurrentDevice() {
  const Device& device = Device::get();
  driver().context_get_current(&before_);
  device.make_current();
}

CurrentDevice::~CurrentDevice() {
  if (before_ != nullptr) (void)driver().context_set_current.try_call(before_);
}

DeviceMemory::DeviceMemory(std::size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  DevicePointer address = 0;
  driver().memory_allocate(&address, bytes);
  memory_ = Owner<DevicePointer, &Driver::memory_free>(address);
}

PinnedMemory::PinnedMemory(std::size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  void* data = nullptr;
  driver().host_allocate(&data, bytes, 0);
  memory_ = Owner<void*, &Driver::host_free>(data);
}

Module::Module(const std::string& image) {
  constexpr int error_log = 5;
  constexpr int error_log_bytes = 6;
  std::array<char, 8192> log{};
  std::array<int, 2> options = {error_log, error_log_bytes};
  std::array<void*, 2> values = {log.data(), reinterpret_cast<void*>(log.size() - 1)};
  ModuleHandle module = nullptr;
  try {
    driver().module_load(&module, image.c_str(), options.size(), options.data(), values.data());
  } catch (const CudaError& error) {
    throw CompileError("{}: {}", error.what(), log.data());
  }
  module_ = Owner<ModuleHandle, &Driver::module_unload>(module);
}

FunctionHandle Module::function(const std::string& name) const {
  FunctionHandle function = nullptr;
  driver().module_function(&function, module_.get(), name.c_str());
  return function;
}

void launch(const Launch& launch, StreamHandle stream) {
  if (launch.enqueue) return launch.enqueue(stream);
  LaunchConfig config;
  const LaunchShape& shape = launch.shape;
  std::ranges::copy(shape.grid, config.grid);
  if (shape.most > 0) config.grid[0] = std::min(config.grid[0], shape.most);
  std::ranges::copy(shape.block, config.block);
  config.shared_bytes = shape.shared_bytes;
  config.stream = stream;
  std::array<LaunchAttribute, 2> attributes{};
  config.attributes = attributes.data();
  if (shape.cluster > 1) {
    LaunchAttribute& attribute = attributes[config.attribute_count++];
    attribute.id = launch_attribute_cluster;
    std::ranges::copy(std::array{shape.cluster, 1U, 1U}, attribute.value.values);
  }
  if (shape.programmatic) {
    LaunchAttribute& attribute = attributes[config.attribute_count++];
    attribute.id = launch_attribute_programmatic;
    attribute.value.values[0] = 1;
  }
  std::vector<void*> arguments;
  arguments.reserve(launch.arguments.size());
  for (const std::vector<std::byte>& bytes : launch.arguments)
    arguments.push_back(const_cast<std::byte*>(bytes.data()));
  driver().launch(&config, launch.function, arguments.data(), nullptr);
}

void allow_shared(FunctionHandle function, std::size_t bytes) {
  driver().set_function_attribute(function, FunctionAttribute::dynamic_shared_bytes, static_cast<int>(bytes));
}

Event::Event(bool timing) {
  constexpr unsigned disable_timing = 2;
  EventHandle event = nullptr;
  driver().event_create(&event, timing ? 0 : disable_timing);
  event_ = Owner<EventHandle, &Driver::event_destroy>(event);
}

double microseconds_between(const Event& start, const Event& end) {
  float milliseconds = 0;
  driver().event_elapsed(&milliseconds, start.get(), end.get());
  return milliseconds * 1e3;
}

Stream::Stream() {
  constexpr unsigned non_blocking = 1;
  StreamHandle stream = nullptr;
  driver().stream_create(&stream, non_blocking);
  stream_ = Owner<StreamHandle, &Driver::stream_destroy>(stream);
}

bool is_capturing(StreamHandle stream) {
  int status = 0;
  // Asking of the default stream is an error while another stream is captured: then it is not the one.
  return driver().stream_is_capturing.try_call(stream, &status) == 0 && status != 0;
}

void copy_bytes(DevicePointer to, DevicePointer from, std::size_t bytes, StreamHandle stream) {
  if (bytes > 0 && to != from) driver().copy_on_device(to, from, bytes, stream);
}

Graph::Graph(const Stream& stream, const std::function<void()>& work) {
  constexpr int this_thread_only = 1;
  driver().stream_begin_capture(stream.get(), this_thread_only);
  GraphHandle graph = nullptr;
  try {
    work();
  } catch (...) {
    if (driver().stream_end_capture.try_call(stream.get(), &graph) == 0 && graph != nullptr)
      (void)driver().graph_destroy.try_call(graph);
    throw;
  }
  driver().stream_end_capture(stream.get(), &graph);
  const Owner<GraphHandle, &Driver::graph_destroy> captured(graph);
  GraphExecHandle exec = nullptr;
  driver().graph_instantiate(&exec, graph, 0);
  exec_ = Owner<GraphExecHandle, &Driver::graph_exec_destroy>(exec);
}

}  // namespace sylvite::cuda
