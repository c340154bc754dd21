#include "autotune/worker_protocol.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace sylvite {

namespace {

using Json = nlohmann::json;

Json to_json(const CompileRequest& request) {
  return {{"job", "compile"},
          {"kernel", request.kernel},
          {"candidate", request.candidate},
          {"target", request.target}};
}

Json binary(const std::string& bytes) {
  return Json::binary({bytes.begin(), bytes.end()});
}

std::string bytes_of(const Json& json) {
  const auto& bytes = json.get_binary();
  return {bytes.begin(), bytes.end()};
}

Json to_json(const CandidateMessage& message) {
  return {{"candidate", message.candidate}, {"object", binary(message.object)}};
}

Json to_json(const MeasureRequest& request) {
  Json candidates = Json::array();
  for (const CandidateMessage& message : request.candidates) candidates.push_back(to_json(message));
  return {{"job", "measure"},
          {"kernel", request.kernel},
          {"target", request.target},
          {"reference", to_json(request.reference)},
          {"candidates", std::move(candidates)},
          {"threads", request.timing.threads},
          {"samples", request.timing.samples},
          {"sample_us", request.timing.sample_us},
          {"seconds", request.timing.seconds}};
}

Json to_json(const WorkerHello& hello) {
  return {{"reply", "hello"}, {"build", hello.build}};
}

Json to_json(const CompileReply& reply) {
  return {{"reply", "compiled"},
          {"error", reply.error},
          {"object", binary(reply.object)},
          {"seconds", reply.seconds}};
}

Json to_json(const MeasureNote& note) {
  return {{"reply", "running"}, {"running", note.running}};
}

Json to_json(const MeasurementReply& result) {
  return {{"verdict", verdict_name(result.verdict)},
          {"samples_us", result.samples_us},
          {"error", result.error},
          {"message", result.message}};
}

Json to_json(const MeasureReply& reply) {
  Json results = Json::array();
  for (const MeasurementReply& result : reply.results) results.push_back(to_json(result));
  return {{"reply", "measured"}, {"results", std::move(results)}, {"error", reply.error}};
}

CandidateMessage candidate_message(const Json& json) {
  return {json.at("candidate"), bytes_of(json.at("object"))};
}

MeasureRequest measure_request(const Json& json) {
  MeasureRequest request;
  request.kernel = json.at("kernel");
  request.target = json.at("target");
  request.reference = candidate_message(json.at("reference"));
  for (const Json& message : json.at("candidates")) request.candidates.push_back(candidate_message(message));
  request.timing.threads = json.at("threads");
  request.timing.samples = json.at("samples");
  request.timing.sample_us = json.at("sample_us");
  request.timing.seconds = json.at("seconds");
  return request;
}

MeasurementReply measurement_reply(const Json& json) {
  auto verdict = find_verdict(json.at("verdict").get<std::string>());
  if (!verdict) throw IoError("a worker sent the unknown verdict {}", json.at("verdict").dump());
  return {*verdict, json.at("samples_us"), json.at("error"), json.at("message")};
}

MeasureReply measure_reply(const Json& json) {
  MeasureReply reply;
  for (const Json& result : json.at("results")) reply.results.push_back(measurement_reply(result));
  reply.error = json.at("error");
  return reply;
}

/// Runs `decode` on the parsed message; JSON's exceptions become IoError.
template <typename Result, typename Decode>
Result decode_message(std::string_view message, Decode decode) {
  try {
    return decode(Json::from_cbor(message));
  } catch (const Json::exception& error) {
    throw IoError("malformed message between pool and worker: {}", error.what());
  }
}

std::string to_message(const Json& json) {
  std::string message;
  Json::to_cbor(json, message);
  return message;
}

}  // namespace

std::string encode(const WorkerRequest& request) {
  return std::visit([](const auto& value) { return to_message(to_json(value)); }, request);
}

std::string encode(const WorkerReply& reply) {
  return std::visit([](const auto& value) { return to_message(to_json(value)); }, reply);
}

WorkerRequest decode_request(std::string_view message) {
  return decode_message<WorkerRequest>(message, [](const Json& json) -> WorkerRequest {
    if (json.at("job") == "compile")
      return CompileRequest{json.at("kernel"), json.at("candidate"), json.at("target")};
    return measure_request(json);
  });
}

WorkerReply decode_reply(std::string_view message) {
  return decode_message<WorkerReply>(message, [](const Json& json) -> WorkerReply {
    const std::string kind = json.at("reply");
    if (kind == "hello") return WorkerHello{json.at("build")};
    if (kind == "compiled")
      return CompileReply{json.at("error"), bytes_of(json.at("object")), json.at("seconds")};
    if (kind == "running") return MeasureNote{json.at("running")};
    return measure_reply(json);
  });
}

}  // namespace sylvite
