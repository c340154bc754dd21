#include "autotune/worker_protocol.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace sylvite {

namespace {

using Json = nlohmann::json;

Json to_json(const CompileRequest& request) {
  return {{"job", "compile"},
          {"kernel", request.kernel},
          {"candidate", request.candidate},
          {"target", request.target},
          {"object_path", request.object_path}};
}

Json to_json(const CandidateFile& file) {
  return {{"candidate", file.candidate}, {"object_path", file.object_path}};
}

Json to_json(const MeasureRequest& request) {
  Json candidates = Json::array();
  for (const CandidateFile& file : request.candidates) {
    candidates.push_back(to_json(file));
  }
  return {{"job", "measure"},
          {"kernel", request.kernel},
          {"target", request.target},
          {"reference", to_json(request.reference)},
          {"candidates", std::move(candidates)},
          {"threads", request.threads},
          {"samples", request.samples},
          {"sample_us", request.sample_us},
          {"seconds", request.seconds}};
}

Json to_json(const CompileReply& reply) {
  return {{"reply", "compiled"}, {"error", reply.error}, {"seconds", reply.seconds}};
}

Json to_json(const MeasureNote& note) {
  return {{"reply", "running"}, {"running", note.running}};
}

/// JSON has no infinity: an error that is not finite travels as null.
Json to_json(const MeasurementReply& result) {
  return {{"verdict", verdict_name(result.verdict)},
          {"samples_us", result.samples_us},
          {"error", result.error},
          {"message", result.message}};
}

Json to_json(const MeasureReply& reply) {
  Json results = Json::array();
  for (const MeasurementReply& result : reply.results) {
    results.push_back(to_json(result));
  }
  return {{"reply", "measured"}, {"results", std::move(results)}, {"error", reply.error}};
}

CandidateFile candidate_file(const Json& json) {
  return {json.at("candidate"), json.at("object_path")};
}

MeasureRequest measure_request(const Json& json) {
  MeasureRequest request;
  request.kernel = json.at("kernel");
  request.target = json.at("target");
  request.reference = candidate_file(json.at("reference"));
  for (const Json& file : json.at("candidates")) {
    request.candidates.push_back(candidate_file(file));
  }
  request.threads = json.at("threads");
  request.samples = json.at("samples");
  request.sample_us = json.at("sample_us");
  request.seconds = json.at("seconds");
  return request;
}

MeasurementReply measurement_reply(const Json& json) {
  auto verdict = find_verdict(json.at("verdict").get<std::string>());
  if (!verdict) {
    throw IoError("a worker sent the unknown verdict {}", json.at("verdict").dump());
  }
  const Json& error = json.at("error");
  return {*verdict, json.at("samples_us"), error.is_number() ? error.get<double>() : HUGE_VAL,
          json.at("message")};
}

MeasureReply measure_reply(const Json& json) {
  MeasureReply reply;
  for (const Json& result : json.at("results")) {
    reply.results.push_back(measurement_reply(result));
  }
  reply.error = json.at("error");
  return reply;
}

/// Runs `decode` on the parsed message; JSON's exceptions become IoError.
template <typename Result, typename Decode>
Result decode_message(std::string_view message, Decode decode) {
  try {
    return decode(Json::parse(message));
  } catch (const Json::exception& error) {
    throw IoError("malformed message between pool and worker: {}", error.what());
  }
}

/// Messages of compilers and crashes may hold any bytes; broken UTF-8 is replaced.
std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string encode(const WorkerRequest& request) {
  return std::visit([](const auto& value) { return dump(to_json(value)); }, request);
}

std::string encode(const WorkerReply& reply) {
  return std::visit([](const auto& value) { return dump(to_json(value)); }, reply);
}

WorkerRequest decode_request(std::string_view message) {
  return decode_message<WorkerRequest>(message, [](const Json& json) -> WorkerRequest {
    if (json.at("job") == "compile") {
      return CompileRequest{json.at("kernel"), json.at("candidate"), json.at("target"),
                            json.at("object_path")};
    }
    return measure_request(json);
  });
}

WorkerReply decode_reply(std::string_view message) {
  return decode_message<WorkerReply>(message, [](const Json& json) -> WorkerReply {
    const std::string kind = json.at("reply");
    if (kind == "compiled") {
      return CompileReply{json.at("error"), json.at("seconds")};
    }
    if (kind == "running") {
      return MeasureNote{json.at("running")};
    }
    return measure_reply(json);
  });
}

}  // namespace sylvite
