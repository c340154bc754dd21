#pragma once
// The structs of DLPack 1.3 (https://dmlc.github.io/dlpack) that tensors of other libraries are read and made through,
// members named as there. Layout is an ABI: nothing may be added or moved.

#include <cstdint>

namespace sylvite::dlpack {

inline constexpr std::int32_t cpu_device = 1;
inline constexpr std::int32_t cuda_device = 2;
inline constexpr std::uint32_t major_version = 1;

struct Device {
  std::int32_t device_type;
  std::int32_t device_id;
};

struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct DlTensor {
  void* data;
  Device device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  ///< in elements; nullptr is dense
  std::uint64_t byte_offset;

  /// Of the first element.
  [[nodiscard]] void* address() const { return static_cast<char*>(data) + byte_offset; }
};

struct Managed {
  DlTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(Managed* self);
};

struct Version {
  std::uint32_t major;
  std::uint32_t minor;
};

struct ManagedVersioned {
  Version version;
  void* manager_ctx;
  void (*deleter)(ManagedVersioned* self);
  std::uint64_t flags;
  DlTensor dl_tensor;
};

/// A library's own functions, in the capsule `type.__dlpack_c_exchange_api__`. Each returns 0, or -1 with a Python
/// error set. None waits for a device.
struct ExchangeApi {
  Version version;
  ExchangeApi* previous;
  int (*allocate)(DlTensor* prototype, ManagedVersioned** out, void* error_context,
                  void (*set_error)(void* error_context, const char* kind, const char* message));
  int (*managed_from_object)(void* object, ManagedVersioned** out);
  int (*object_from_managed)(ManagedVersioned* tensor, void** out);  ///< takes the tensor over
  int (*view_of_object)(void* object, DlTensor* out);                ///< borrowed; nullptr where missing
  int (*current_stream)(std::int32_t device_type, std::int32_t device_id, void** out);
};

}  // namespace sylvite::dlpack
