// The fuzz target of libFuzzer: any bytes as a model. Built by the preset `fuzz`; docs/testing.md has the
// commands.
//
// Half of the changes are libFuzzer's own, of bytes; the other half keep the file parseable: one field
// somewhere in the message becomes an odd value, another's copy, twice there, or nothing.

#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/try_model.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace sylvite::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

/// A model that tells its fields; the generated class is of protobuf's small kind, which does not.
std::unique_ptr<Message> new_model() {
  static google::protobuf::DescriptorPool pool;
  static google::protobuf::DynamicMessageFactory factory;
  static const Message* prototype = [] {
    std::ifstream file(ONNX_DESCRIPTOR, std::ios::binary);
    google::protobuf::FileDescriptorSet set;
    if (!set.ParseFromIstream(&file)) std::abort();
    return factory.GetPrototype(pool.BuildFile(set.file(0))->FindMessageTypeByName("ModelProto"));
  }();
  return std::unique_ptr<Message>(prototype->New());
}

/// One field that is set, or one element of a repeated one.
struct Slot {
  Message* owner = nullptr;
  const FieldDescriptor* field = nullptr;
  int index = -1;  ///< -1: not repeated
};

void collect(Message& message, std::vector<Slot>& slots) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      slots.push_back({&message, field, field->is_repeated() ? i : -1});
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
      collect(field->is_repeated() ? *reflection.MutableRepeatedMessage(&message, field, i)
                                   : *reflection.MutableMessage(&message, field),
              slots);
    }
  }
}

std::int64_t odd_integer(std::mt19937& random) {
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  constexpr std::array<std::int64_t, 12> extremes = {-1,        least,     least + 1,       most,
                                                     most - 1,  1LL << 31, (1LL << 31) - 1, 1LL << 32,
                                                     1LL << 40, 1LL << 62, 1 << 16,         255};
  const std::int64_t small = static_cast<std::int64_t>(random() % 40) - 4;
  return random() % 3 == 0 ? extremes[random() % extremes.size()] : small;
}

double odd_real(std::mt19937& random) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr std::array values = {0.0,
                                 -0.0,
                                 1.0,
                                 -1.0,
                                 0.5,
                                 1e-40,
                                 1e30,
                                 -1e300,
                                 infinity,
                                 -infinity,
                                 std::numeric_limits<double>::quiet_NaN()};
  return values[random() % values.size()];
}

std::string odd_string(const std::string& old, const std::vector<Slot>& slots, std::mt19937& random) {
  const Slot& other = slots[random() % slots.size()];
  if (other.field->cpp_type() == FieldDescriptor::CPPTYPE_STRING && random() % 4 != 0) {
    const Reflection& reflection = *other.owner->GetReflection();
    return other.index < 0 ? reflection.GetString(*other.owner, other.field)
                           : reflection.GetRepeatedString(*other.owner, other.field, other.index);
  }
  std::string text = old;
  text.resize(old.size() + 16);
  text.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(text.data()), old.size(), text.size()));
  return text;
}

/// Sets a number, enumerator or string; leaves a message alone.
void set_odd_value(const Slot& slot, const std::vector<Slot>& slots, std::mt19937& random) {
  const Reflection& reflection = *slot.owner->GetReflection();
  Message* owner = slot.owner;
  const FieldDescriptor* field = slot.field;
  const bool single = slot.index < 0;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32: {
      const auto value = static_cast<std::int32_t>(odd_integer(random));
      single ? reflection.SetInt32(owner, field, value)
             : reflection.SetRepeatedInt32(owner, field, slot.index, value);
      return;
    }
    case FieldDescriptor::CPPTYPE_INT64: {
      const std::int64_t value = odd_integer(random);
      single ? reflection.SetInt64(owner, field, value)
             : reflection.SetRepeatedInt64(owner, field, slot.index, value);
      return;
    }
    case FieldDescriptor::CPPTYPE_FLOAT: {
      const auto value = static_cast<float>(odd_real(random));
      single ? reflection.SetFloat(owner, field, value)
             : reflection.SetRepeatedFloat(owner, field, slot.index, value);
      return;
    }
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int value =
          field->enum_type()
              ->value(static_cast<int>(random() % static_cast<unsigned>(field->enum_type()->value_count())))
              ->number();
      single ? reflection.SetEnumValue(owner, field, value)
             : reflection.SetRepeatedEnumValue(owner, field, slot.index, value);
      return;
    }
    case FieldDescriptor::CPPTYPE_STRING: {
      const std::string old = single ? reflection.GetString(*owner, field)
                                     : reflection.GetRepeatedString(*owner, field, slot.index);
      const std::string value = odd_string(old, slots, random);
      single ? reflection.SetString(owner, field, value)
             : reflection.SetRepeatedString(owner, field, slot.index, value);
      return;
    }
    default:
      return;
  }
}

/// A repeated field's element is removed, doubled or swapped with another; a single field is cleared.
void change_structure(const Slot& slot, std::mt19937& random) {
  const Reflection& reflection = *slot.owner->GetReflection();
  if (slot.index < 0) {
    reflection.ClearField(slot.owner, slot.field);
    return;
  }
  const int last = reflection.FieldSize(*slot.owner, slot.field) - 1;
  const int other = static_cast<int>(random() % static_cast<unsigned>(last + 1));
  switch (random() % 3) {
    case 0:
      reflection.SwapElements(slot.owner, slot.field, slot.index, last);
      reflection.RemoveLast(slot.owner, slot.field);
      return;
    case 1:
      if (slot.field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        const std::string copy =
            reflection.GetRepeatedMessage(*slot.owner, slot.field, slot.index).SerializePartialAsString();
        reflection.AddMessage(slot.owner, slot.field)->ParsePartialFromString(copy);
        return;
      }
      [[fallthrough]];
    default:
      reflection.SwapElements(slot.owner, slot.field, slot.index, other);
  }
}

std::size_t mutate_model(Message& model, std::uint8_t* data, std::size_t max_size, std::mt19937& random) {
  std::vector<Slot> slots;
  collect(model, slots);
  if (slots.empty()) return 0;
  const Slot slot = slots[random() % slots.size()];
  const bool is_message = slot.field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  if (is_message || random() % 6 == 0)
    change_structure(slot, random);
  else
    set_odd_value(slot, slots, random);
  const std::size_t size = model.ByteSizeLong();
  return size <= max_size && model.SerializePartialToArray(data, static_cast<int>(size)) ? size : 0;
}

}  // namespace
}  // namespace sylvite::fuzz

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  std::mt19937 random(seed);
  const auto model = sylvite::fuzz::new_model();
  if (random() % 2 == 0 && model->ParsePartialFromArray(data, static_cast<int>(size))) {
    const std::size_t changed = sylvite::fuzz::mutate_model(*model, data, max_size, random);
    if (changed > 0) return changed;
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)sylvite::fuzz::try_model({reinterpret_cast<const char*>(data), size});
  return 0;
}
