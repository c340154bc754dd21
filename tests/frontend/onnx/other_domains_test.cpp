// Operators of com.microsoft and ai.onnx.ml: what the graph is made of, and what is refused. Their values are compared with
// ONNX Runtime's by tests/onnx.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "frontend/onnx/imported_model.h"
#include "frontend/onnx/importer.h"
#include "frontend/passes/pass_list.h"
#include "tests/frontend/onnx/onnx_model.h"

namespace sylvite::other_domains_test {
namespace {

using testing::HasSubstr;

constexpr const char* microsoft = "com.microsoft";

/// A model of one node; input names that are empty are absent, all outputs are the model's.
struct OneNode {
  onnx::ModelProto model = empty_model(18);

  OneNode(const std::string& domain, const std::string& op, const std::vector<std::string>& inputs,
          const std::vector<std::string>& outputs = {"y"}) {
    add_node(*model.mutable_graph(), op, inputs, outputs).set_domain(domain);
    for (const std::string& output : outputs) add_output(*model.mutable_graph(), output);
  }
  onnx::GraphProto& graph() { return *model.mutable_graph(); }
  onnx::NodeProto& node() { return *graph().mutable_node(0); }
  OneNode& input(const std::string& name, const std::vector<std::int64_t>& dims,
                 int type = onnx::TensorProto::FLOAT) {
    add_input(graph(), name, dims, type);
    return *this;
  }
  OneNode& integer(const std::string& name, std::int64_t value) {
    set_integer(node(), name, value);
    return *this;
  }
  OneNode& text(const std::string& name, const std::string& value) {
    set_text(node(), name, value);
    return *this;
  }
  OneNode& bytes(const std::string& name, const std::vector<std::int64_t>& dims) {
    onnx::TensorProto& tensor = *graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::UINT8);
    for (const std::int64_t dim : dims) tensor.add_dims(dim);
    tensor.set_raw_data(std::string(static_cast<std::size_t>(checked_product(dims, "test")), '\x37'));
    return *this;
  }

  [[nodiscard]] Graph import() const { return run_passes(import_onnx_bytes(model.SerializeAsString(), "")); }
  /// The message of an UnsupportedError; "" without one.
  [[nodiscard]] std::string refusal() const {
    try {
      (void)import();
    } catch (const UnsupportedError& error) {
      return error.what();
    }
    return "";
  }
};

int count_of(const Graph& graph, Op op) {
  return static_cast<int>(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                                        [&](const Node& node) { return node.op == op; }));
}

TEST(OtherDomainsTest, JoinedOperatorsAreTheCoreOperationsThatPassesKnow) {
  const Graph norm = OneNode(microsoft, "SkipLayerNormalization", {"x", "s", "g", "b"})
                         .input("x", {1, 4, 8})
                         .input("s", {1, 4, 8})
                         .input("g", {8})
                         .input("b", {8})
                         .import();
  EXPECT_EQ(count_of(norm, Op::layer_norm), 1);
  EXPECT_EQ(count_of(norm, Op::add), 1);
  const Graph gelu = OneNode(microsoft, "BiasGelu", {"x", "b"}).input("x", {4, 8}).input("b", {8}).import();
  EXPECT_EQ(count_of(gelu, Op::gelu), 1);
  EXPECT_EQ(norm.nodes().size() + gelu.nodes().size(), 4U);
}

TEST(OtherDomainsTest, AttentionIsOneOperation) {
  const Graph graph = OneNode(microsoft, "Attention", {"x", "w", "b"})
                          .input("x", {1, 4, 8})
                          .input("w", {8, 24})
                          .input("b", {24})
                          .integer("num_heads", 2)
                          .integer("unidirectional", 1)
                          .import();
  EXPECT_EQ(count_of(graph, Op::attention), 1);
  EXPECT_EQ(count_of(graph, Op::softmax), 0);
  for (const Node& node : graph.nodes())
    if (node.op == Op::attention) EXPECT_EQ(node.attributes.integer("causal"), 1);
}

TEST(OtherDomainsTest, TheFirstTokensOfGroupedAttentionNeedNoMask) {
  OneNode one(microsoft, "GroupQueryAttention", {"q", "k", "v", "", "", "lengths", "total"});
  one.input("q", {1, 4, 32}).input("k", {1, 4, 16}).input("v", {1, 4, 16});
  one.input("lengths", {1}, onnx::TensorProto::INT32).integer("num_heads", 4).integer("kv_num_heads", 2);
  add_integers(one.graph(), "total", {4});
  const Graph graph = one.import();
  for (const Node& node : graph.nodes()) {
    if (node.op != Op::attention) continue;
    EXPECT_EQ(node.inputs.size(), 3U);
    EXPECT_EQ(node.attributes.integer("causal"), 1);
  }
  EXPECT_EQ(count_of(graph, Op::attention), 1);
}

/// Half a byte per number, and a scale for 32 of them: a fifth of what they would take as floats.
TEST(OtherDomainsTest, LargeWeightsOfFewBitsStayPacked) {
  constexpr std::int64_t size = 2048;
  OneNode one(microsoft, "MatMulNBits", {"x", "b", "s"});
  one.input("x", {1, size}).bytes("b", {size, size / 32, 16});
  add_floats(one.graph(), "s", {size, size / 32}, std::vector<float>(size * size / 32, 0.5F));
  one.integer("K", size).integer("N", size).integer("block_size", 32).integer("bits", 4);
  const Graph graph = one.import();
  std::int64_t bytes = 0;
  for (const Node& node : graph.nodes())
    for (const ValueId input : node.inputs)
      if (input != no_value && graph.is_constant(input)) bytes += graph.type(input).byte_size();
  const std::int64_t packed = size * size / 2 + size * size / 32 * 4;
  EXPECT_GE(bytes, packed);
  EXPECT_LT(bytes, packed + 4096);
}

TEST(OtherDomainsTest, RefusesByNameWhatItDoesNotServe) {
  const auto with_attribute = [](const char* op, const char* attribute) {
    return OneNode(microsoft, op, {"x", "w"})
        .input("x", {1, 4, 8})
        .input("w", {8, 24})
        .integer("num_heads", 2)
        .integer(attribute, 1)
        .refusal();
  };
  EXPECT_THAT(with_attribute("Attention", "do_rotary"), HasSubstr("'do_rotary'"));
  EXPECT_THAT(with_attribute("Attention", "past_present_share_buffer"),
              HasSubstr("'past_present_share_buffer'"));
  EXPECT_THAT(with_attribute("Attention", "invented_tomorrow"),
              HasSubstr("'invented_tomorrow' of Attention"));
  OneNode grouped(microsoft, "GroupQueryAttention", {"q", "q", "q", "", "", "l", "t"});
  grouped.input("q", {1, 4, 16})
      .integer("num_heads", 2)
      .integer("kv_num_heads", 2)
      .text("k_quant_type", "PER_TENSOR");
  EXPECT_THAT(grouped.refusal(), HasSubstr("'k_quant_type'"));
  OneNode bits(microsoft, "MatMulNBits", {"x", "b", "s", "", "g"});
  bits.input("x", {1, 32})
      .input("s", {4, 1})
      .input("g", {32}, onnx::TensorProto::INT32)
      .bytes("b", {4, 1, 16});
  EXPECT_THAT(bits.integer("K", 32).integer("N", 4).integer("block_size", 32).refusal(),
              HasSubstr("'g_idx'"));
  EXPECT_THAT(OneNode(microsoft, "PagedAttention", {"x"}).input("x", {1}).refusal(),
              HasSubstr("'PagedAttention' of domain 'com.microsoft'"));
  EXPECT_THAT(OneNode("com.microsoft.nchwc", "Conv", {"x"}).input("x", {1}).refusal(),
              HasSubstr("saved this model for one machine"));
}

TEST(OtherDomainsTest, UnknownCategoriesAreErrorsOfTheRunWhereNoZerosStandForThem) {
  OneNode encoder("ai.onnx.ml", "OneHotEncoder", {"x"});
  encoder.input("x", {3}, onnx::TensorProto::INT64).integer("zeros", 0);
  onnx::AttributeProto& categories = *encoder.node().add_attribute();
  categories.set_name("cats_int64s");
  categories.set_type(onnx::AttributeProto::INTS);
  for (const std::int64_t category : {2, 5}) categories.add_ints(category);
  const ImportedModel model = import_model_bytes(encoder.model.SerializeAsString(), "");
  const auto run = [&](const std::vector<std::int64_t>& x) {
    return interpret(model, {Tensor::of<std::int64_t>(DType::i64, {3}, x)}).at(0).tensor();
  };
  const Tensor flags = run({5, 2, 5});
  EXPECT_EQ(flags.dims(), (Dims{3, 2}));
  for (std::int64_t i = 0; i < 6; ++i)
    EXPECT_EQ(flags.as_double(i), i % 2 == (i == 2 || i == 3 ? 0 : 1) ? 1 : 0);
  EXPECT_THAT([&] { (void)run({5, 3, 5}); },
              testing::ThrowsMessage<InputError>(HasSubstr("an element is none of the categories")));
}

/// Not in a run that comes to them.
TEST(OtherDomainsTest, RefusesUnknownOperatorsAmongStepsOfTheHost) {
  OneNode places("", "NonZero", {"x"}, {"places"});
  places.input("x", {3});
  add_node(places.graph(), "BeamSearch", {"places"}, {"sequences"}).set_domain(microsoft);
  add_output(places.graph(), "sequences");
  EXPECT_THAT(
      [&] { (void)import_model_bytes(places.model.SerializeAsString(), ""); },
      testing::ThrowsMessage<UnsupportedError>(HasSubstr("operator 'BeamSearch' of domain 'com.microsoft'")));
}

TEST(OtherDomainsTest, RefusesMapsAndUnknownTransforms) {
  for (const char* type : {"CastMap", "DictVectorizer"})
    EXPECT_THAT(OneNode("ai.onnx.ml", type, {"x"}).input("x", {1, 2}).refusal(),
                HasSubstr("maps are not supported: give the model their values as a tensor"));
  OneNode map("ai.onnx.ml", "DictVectorizer", {"x"});
  map.input("x", {1, 2})
      .graph()
      .mutable_input(0)
      ->mutable_type()
      ->mutable_map_type()
      ->set_key_type(onnx::TensorProto::STRING);
  EXPECT_THAT([&] { (void)import_model_bytes(map.model.SerializeAsString(), ""); },
              testing::ThrowsMessage<UnsupportedError>(HasSubstr("input 'x': maps are not supported")));
  OneNode linear("ai.onnx.ml", "LinearRegressor", {"x"});
  onnx::AttributeProto& weights = *linear.node().add_attribute();
  weights.set_name("coefficients");
  weights.set_type(onnx::AttributeProto::FLOATS);
  weights.add_floats(1);
  linear.input("x", {1, 1}).text("post_transform", "WILD");
  EXPECT_THAT(linear.refusal(), HasSubstr("'WILD'"));
}

}  // namespace
}  // namespace sylvite::other_domains_test
