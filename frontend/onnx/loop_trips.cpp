#include "frontend/onnx/loop_trips.h"

#include <onnx-ml.pb.h>

#include "base/error.h"
#include "base/log.h"
#include "frontend/onnx/node_order.h"

namespace sylvite {
namespace {

std::optional<std::vector<Tensor>> run_body(Tail& body, const std::vector<TailValue>& values,
                                            const TailRunner& runner) {
  const std::optional<TailCall> call = body.call(values);
  if (!call) return std::nullopt;
  const std::optional<std::vector<HostValue>> results = runner.run(call->model, call->inputs);
  if (!results) return std::nullopt;
  std::vector<Tensor> tensors;
  tensors.reserve(results->size());
  for (const HostValue& result : *results) tensors.push_back(result.tensor());
  return tensors;
}

}  // namespace

bool TripRunner::is_worth_it() const {
  constexpr double share = 0.05;  // a trip is run many times, at known sizes as a rule
  return run.run != nullptr && model.tails != nullptr &&
         model.tails->step_seconds() >= share * run.least_seconds;
}

std::vector<std::string> names_around(const onnx::GraphProto& body) {
  std::set<std::string> own;
  for (const onnx::ValueInfoProto& input : body.input()) own.insert(input.name());
  for (const onnx::NodeProto& node : body.node()) own.insert(node.output().begin(), node.output().end());
  std::set<std::string> names;
  for (const onnx::NodeProto& node : body.node()) names.merge(names_read(node));
  for (const onnx::ValueInfoProto& output : body.output()) names.insert(output.name());
  std::vector<std::string> around;
  for (const std::string& name : names)
    if (!name.empty() && !own.contains(name)) around.push_back(name);
  return around;
}

LoopTrips::LoopTrips(const TripRunner& runner, const onnx::GraphProto& body, std::vector<TailValue> around)
    : runner_(runner), nodes_(order_nodes(body.node())) {
  for (const onnx::ValueInfoProto& input : body.input()) values_.push_back({input.name(), {}});
  for (TailValue& value : around) values_.push_back(std::move(value));
  for (const onnx::ValueInfoProto& output : body.output()) outputs_.push_back(output.name());
}

std::optional<std::vector<Tensor>> LoopTrips::run(const std::vector<Tensor>& given) {
  for (std::size_t i = 0; i < given.size(); ++i) values_[i].value = given[i];
  return runner_.model.tails->with(runner_.model, nodes_, outputs_, values_, [&](Tail& body) {
    try {
      return run_body(body, values_, runner_.run);
    } catch (const InputError& error) {  // the imported trip tells, too
      log_line(LogLevel::info, "loop: {}", error.what());
    } catch (const Error& error) {
      log_line(LogLevel::info, "loop: {}", error.what());
      body.give_up();
    }
    return std::optional<std::vector<Tensor>>();
  });
}

}  // namespace sylvite
