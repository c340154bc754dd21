#include "frontend/onnx/import_context.h"

#include <onnx-ml.pb.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "frontend/onnx/graph_import.h"
#include "frontend/onnx/loop_trips.h"
#include "frontend/onnx/node_order.h"
#include "frontend/onnx/node_store.h"
#include "frontend/onnx/tail.h"
#include "frontend/onnx/tensor.h"
#include "frontend/values/storage.h"

namespace sylvite {
namespace {

using onnx::AttributeProto;

void check_attribute_kind(const AttributeProto& attribute, AttributeProto::AttributeType wanted) {
  if (attribute.type() == wanted || attribute.type() == AttributeProto::UNDEFINED) return;
  throw ModelError("attribute '{}' has type {}, expected {}", attribute.name(),
                   AttributeProto::AttributeType_Name(attribute.type()),
                   AttributeProto::AttributeType_Name(wanted));
}

}  // namespace

const std::string& ImportContext::op_type() const {
  return node_.op_type();
}
GraphBuilder& ImportContext::builder() {
  return importer_.builder();
}
int ImportContext::input_count() const {
  return node_.input_size();
}

bool ImportContext::has_input(int i) {
  inputs_known_ = std::max(inputs_known_, i + 1);
  if (i >= node_.input_size() || node_.input(i).empty()) return false;
  return !importer_.read(scope_, node_.input(i)).is_absent();
}

Sym ImportContext::input(int i) {
  if (!has_input(i)) throw ModelError("input {} is required", i);
  const OnnxBinding& binding = importer_.read(scope_, node_.input(i));
  if (!binding.is_tensor()) {
    throw UnsupportedError("input {} ('{}') is {}, expected a tensor of numbers", i, node_.input(i),
                           binding.sequence != nullptr ? "a sequence" : "a tensor of strings");
  }
  return {importer_.builder(), binding.value};
}

Sym ImportContext::optional(int i) {
  return has_input(i) ? input(i) : Sym();
}

void ImportContext::check_no_surplus_inputs() const {
  for (int i = inputs_known_; i < node_.input_size(); ++i) {
    if (node_.input(i).empty()) continue;
    throw ModelError("input {} ('{}') is one too many: this operator takes {}", i, node_.input(i),
                     inputs_known_);
  }
}

const std::string& ImportContext::input_name(int i) const {
  return node_.input(i);
}

bool ImportContext::products_are_fast() const {
  return importer_.options().products_are_fast;
}

bool ImportContext::is_state(int i) const {
  return frame_.caller == nullptr && importer_.options().states.contains(input_name(i));
}

std::vector<Sym> ImportContext::inputs() {
  std::vector<Sym> result;
  result.reserve(static_cast<std::size_t>(input_count()));
  for (int i = 0; i < input_count(); ++i) result.push_back(input(i));
  return result;
}

Tensor ImportContext::constant(int i) {
  const Sym given = input(i);
  const std::optional<Tensor> value = builder().known(given);
  if (!value) {
    // The first input is data, unless it is sizes; the others say what is done with it.
    const bool is_number = i > 0 && is_few(given.dims()) && given.dtype() != DType::boolean;
    throw NeedsValueError(
        fmt::format("input {} ('{}') must be known when the model is imported; bind the model input it comes "
                    "from to a constant",
                    i, node_.input(i)),
        fmt::format("the result's shape depends on the values of '{}'", node_.input(i)),
        is_number || may_be_sizes(given.dtype(), given.dims()) ? node_.input(i) : "");
  }
  return *value;
}

namespace {

/// A list takes eight bytes for each element of the tensor, however small those are.
void check_list_size(const Tensor& tensor) {
  constexpr std::int64_t most = std::int64_t{1} << 21;
  if (tensor.size() > most)
    throw UnsupportedError("the values of {} elements are asked for, at most {} can be", tensor.size(), most);
}

}  // namespace

bool ImportContext::constant_flag(int i) {
  const Tensor flag = constant(i);
  if (flag.size() != 1) throw ModelError("input {} has {} elements, expected 1", i, flag.size());
  return flag.as_int64(0) != 0;
}

std::int64_t ImportContext::constant_integer(int i) {
  const Tensor number = constant(i);
  if (number.size() == 0) throw ModelError("input {} has no element, expected 1", i);
  return number.as_int64(0);
}

double ImportContext::constant_real(int i) {
  const Tensor number = constant(i);
  if (number.size() == 0) throw ModelError("input {} has no element, expected 1", i);
  return number.as_double(0);
}

std::vector<std::int64_t> ImportContext::constant_integers(int i) {
  const Tensor tensor = constant(i);
  check_list_size(tensor);
  return tensor.to_int64s();
}

std::vector<double> ImportContext::constant_reals(int i) {
  const Tensor tensor = constant(i);
  check_list_size(tensor);
  return decode<double>(tensor);
}

std::optional<std::vector<std::int64_t>> ImportContext::integers_from(int i, const std::string& name) {
  if (has_input(i)) return constant_integers(i);
  if (has_attribute(name)) return integers(name);
  return std::nullopt;
}

void ImportContext::check_no_surplus_attributes() const {
  for (const AttributeProto& attribute : node_.attribute())
    if (!attributes_known_.contains(attribute.name()))
      throw UnsupportedError("attribute '{}' of {} is not supported", attribute.name(), op_type());
}

const AttributeProto* ImportContext::find_attribute(const std::string& name) const {
  attributes_known_.insert(name);
  for (const AttributeProto& attribute : node_.attribute()) {
    if (attribute.name() != name) continue;
    if (attribute.ref_attr_name().empty()) return &attribute;
    const auto found = frame_.attributes.find(attribute.ref_attr_name());
    return found == frame_.attributes.end() ? nullptr : found->second;
  }
  return nullptr;
}

std::int64_t ImportContext::integer(const std::string& name, std::int64_t fallback) const {
  const AttributeProto* attribute = find_attribute(name);
  if (attribute == nullptr) return fallback;
  check_attribute_kind(*attribute, AttributeProto::INT);
  return attribute->i();
}

std::int64_t ImportContext::required_integer(const std::string& name) const {
  if (!has_attribute(name)) throw ModelError("attribute '{}' is required", name);
  return integer(name, 0);
}

double ImportContext::real(const std::string& name, double fallback) const {
  const AttributeProto* attribute = find_attribute(name);
  if (attribute == nullptr) return fallback;
  check_attribute_kind(*attribute, AttributeProto::FLOAT);
  return static_cast<double>(attribute->f());
}

std::string ImportContext::string(const std::string& name, const std::string& fallback) const {
  const AttributeProto* attribute = find_attribute(name);
  if (attribute == nullptr) return fallback;
  check_attribute_kind(*attribute, AttributeProto::STRING);
  return attribute->s();
}

std::vector<std::int64_t> ImportContext::integers(const std::string& name) const {
  const AttributeProto* attribute = find_attribute(name);
  if (attribute == nullptr) return {};
  check_attribute_kind(*attribute, AttributeProto::INTS);
  return {attribute->ints().begin(), attribute->ints().end()};
}

std::vector<double> ImportContext::reals(const std::string& name) const {
  const AttributeProto* attribute = find_attribute(name);
  if (attribute == nullptr) return {};
  check_attribute_kind(*attribute, AttributeProto::FLOATS);
  return {attribute->floats().begin(), attribute->floats().end()};
}

std::vector<std::string> ImportContext::strings(const std::string& name) const {
  const AttributeProto* attribute = find_attribute(name);
  if (attribute == nullptr) return {};
  check_attribute_kind(*attribute, AttributeProto::STRINGS);
  return {attribute->strings().begin(), attribute->strings().end()};
}

Tensor ImportContext::tensor(const std::string& name) const {
  const AttributeProto* attribute = find_attribute(name);
  if (attribute == nullptr) throw ModelError("attribute '{}' is required", name);
  if (attribute->has_sparse_tensor()) return importer_.dense(attribute->sparse_tensor());
  check_attribute_kind(*attribute, AttributeProto::TENSOR);
  return decode_tensor(attribute->t(), importer_.external());
}

bool ImportContext::is_string_tensor(const std::string& name) const {
  const AttributeProto* attribute = find_attribute(name);
  return attribute != nullptr && attribute->has_t() &&
         attribute->t().data_type() == onnx::TensorProto::STRING;
}

StringTensor ImportContext::string_tensor(const std::string& name) const {
  if (!is_string_tensor(name)) throw ModelError("attribute '{}' holds no strings", name);
  return decode_strings(find_attribute(name)->t());
}

const onnx::GraphProto& ImportContext::subgraph(const std::string& name) const {
  const AttributeProto* attribute = find_attribute(name);
  if (attribute == nullptr || !attribute->has_g()) throw ModelError("graph attribute '{}' is required", name);
  return attribute->g();
}

int ImportContext::output_count() const {
  return node_.output_size();
}
bool ImportContext::wants_output(int i) const {
  return i < node_.output_size() && !node_.output(i).empty();
}

void ImportContext::output(int i, Sym value) {
  if (wants_output(i)) importer_.bind_output(scope_, node_.output(i), OnnxBinding::of(value.id()));
}

bool ImportContext::is_sequence(int i) {
  return has_input(i) && importer_.read(scope_, node_.input(i)).sequence != nullptr;
}

std::vector<Sym> ImportContext::sequence(int i) {
  if (!has_input(i)) throw ModelError("input {} is required", i);
  const OnnxBinding& binding = importer_.read(scope_, node_.input(i));
  if (binding.sequence == nullptr) throw ModelError("input {} ('{}') is not a sequence", i, node_.input(i));
  std::vector<Sym> values;
  for (const ValueId id : *binding.sequence) values.emplace_back(importer_.builder(), id);
  return values;
}

void ImportContext::output_sequence(int i, const std::vector<Sym>& values) {
  if (!wants_output(i)) return;
  importer_.count_nodes(static_cast<std::int64_t>(values.size() / 256));  // a copy each time it changes
  auto ids = std::make_shared<std::vector<ValueId>>();
  for (const Sym& value : values) ids->push_back(value.id());
  importer_.bind_output(scope_, node_.output(i), {.sequence = ids});
}

std::vector<Sym> ImportContext::import_subgraph(const onnx::GraphProto& graph,
                                                const std::vector<Sym>& values) {
  std::vector<OnnxBinding> bindings;
  bindings.reserve(values.size());
  for (const Sym& value : values) bindings.push_back(OnnxBinding::of(value.id()));
  std::vector<Sym> results;
  for (const OnnxBinding& result : import_subgraph(graph, bindings)) results.push_back(symbol(result));
  return results;
}

std::vector<OnnxBinding> ImportContext::import_subgraph(const onnx::GraphProto& graph,
                                                        const std::vector<OnnxBinding>& values) {
  return importer_.import_subgraph(graph, values, scope_, frame_);
}

std::optional<LoopTrips> ImportContext::loop_trips(const onnx::GraphProto& body) {
  return importer_.loop_trips(body, scope_, frame_);
}

std::shared_ptr<const void> ImportContext::kept_value(
    const std::function<std::shared_ptr<const void>()>& make) {
  const bool is_of_function = frame_.caller != nullptr;  // whose attributes are its callers'
  NodeStore* store = is_of_function ? nullptr : importer_.node_store();
  if (store == nullptr) return make();
  const NodeStore::Kept found = store->find(node_);
  if (found.value != nullptr) {
    attributes_known_.insert(found.attributes.begin(), found.attributes.end());
    return found.value;
  }
  std::set<std::string> others = std::exchange(attributes_known_, {});
  const std::shared_ptr<const void> value = make();
  store->keep(node_, {value, attributes_known_});
  attributes_known_.merge(others);
  return value;
}

Sym ImportContext::symbol(const OnnxBinding& value) {
  if (!value.is_tensor())
    throw UnsupportedError("a subgraph gives something else than a tensor of numbers here");
  return {importer_.builder(), value.value};
}

bool ImportContext::is_running() const {
  return importer_.is_running();
}

void ImportContext::wait_for_run(const std::string& reason) const {
  if (!is_running())
    throw NeedsValueError(fmt::format("{}: this is done when the model runs", reason), reason);
}

void ImportContext::expect(Sym holds, const std::string& otherwise) {
  importer_.expect({holds.id(), describe_node(node_), otherwise});
}

std::vector<OnnxExpectation>& ImportContext::expectations() {
  return importer_.expectations();
}

bool ImportContext::is_strings(int i) {
  if (!has_input(i)) return false;
  const OnnxBinding& binding = importer_.read(scope_, node_.input(i));
  return binding.strings != nullptr || binding.texts != nullptr;
}

const StringTensor& ImportContext::strings(int i) {
  if (!is_strings(i)) throw ModelError("input {} is not a tensor of strings", i);
  const OnnxBinding& binding = importer_.read(scope_, node_.input(i));
  if (binding.strings == nullptr) {
    throw NeedsValueError(fmt::format("input {} ('{}') is known only when the model runs", i, node_.input(i)),
                          fmt::format("reads '{}'", node_.input(i)));
  }
  return *binding.strings;
}

Texts ImportContext::texts(int i) {
  if (!is_strings(i)) throw ModelError("input {} is not a tensor of strings", i);
  const OnnxBinding& binding = importer_.read(scope_, node_.input(i));
  if (binding.texts != nullptr) return {binding.texts, {builder(), binding.value}};
  const StringTensor& known = *binding.strings;
  std::vector<std::int64_t> places(known.values.size());
  std::iota(places.begin(), places.end(), 0);
  builder().reserve_table({4 * static_cast<std::int64_t>(places.size())});  // a text takes as much
  return {std::shared_ptr<const std::vector<std::string>>(binding.strings, &known.values),
          builder().constant(Tensor::of(DType::i64, known.dims, places))};
}

void ImportContext::output_strings(int i, StringTensor value) {
  if (!wants_output(i)) return;
  importer_.bind_output(scope_, node_.output(i),
                        {.strings = std::make_shared<const StringTensor>(std::move(value))});
}

void ImportContext::output_texts(int i, const Texts& texts) {
  if (!wants_output(i)) return;
  const std::optional<Tensor> places = builder().known(texts.places);
  if (places) return output_strings(i, chosen_strings(*texts.list, *places));
  importer_.bind_output(scope_, node_.output(i), {.value = texts.places.id(), .texts = texts.list});
}

OnnxBinding ImportContext::binding(int i) {
  return has_input(i) ? importer_.read(scope_, node_.input(i)) : OnnxBinding();
}

void ImportContext::output_binding(int i, const OnnxBinding& value) {
  if (wants_output(i)) importer_.bind_output(scope_, node_.output(i), value);
}

}  // namespace sylvite
