#pragma once
// The command lines of test programs.

#include <fmt/core.h>

#include <boost/program_options.hpp>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "base/error.h"

namespace sylvite {

/// Reads the options of `table` into what they point to; with its option --help prints them and ends the
/// program.
inline void parse_options(const boost::program_options::options_description& table, int argc, char** argv) {
  namespace po = boost::program_options;
  po::variables_map values;
  po::store(po::parse_command_line(argc, argv, table), values);
  po::notify(values);
  if (values.contains("help")) {
    std::cout << table;
    std::exit(0);
  }
}

/// Part `index`, from 0, of `count` parts of the cases.
struct Shard {
  std::size_t index = 0;
  std::size_t count = 1;
};

/// "I/N"; throws UsageError for anything else.
inline Shard parse_shard(const std::string& text) {
  Shard shard;
  if (std::sscanf(text.c_str(), "%zu/%zu", &shard.index, &shard.count) != 2 || shard.index >= shard.count)
    throw UsageError("shard '{}' is not I/N with I < N", text);
  return shard;
}

/// What `body` returns, or 2 with the program's name in front of what it threw.
template <typename Body>
int guarded_main(const char* program, Body body) {
  try {
    return body();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", program, error.what());
    return 2;
  }
}

}  // namespace sylvite
