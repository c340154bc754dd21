#include "base/log.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace sylvite::log_test {
namespace {

/// What `say` writes to stderr.
std::string written(const std::function<void()>& say) {
  testing::internal::CaptureStderr();
  say();
  return testing::internal::GetCapturedStderr();
}

class LogTest : public testing::Test {
 protected:
  void TearDown() override { set_up_log(LogLevel::off, false); }
};

TEST_F(LogTest, IsSilentUntilItIsSetUp) {
  EXPECT_EQ(written([] { log_line(LogLevel::error, "bad"); }), "");
}

TEST_F(LogTest, ShowsItsLevelAndAbove) {
  const std::string text = written([] {
    set_up_log(LogLevel::info, false);
    log_line(LogLevel::debug, "small");
    log_line(LogLevel::info, "{} kernels", 3);
    log_line(LogLevel::warning, "odd");
  });
  EXPECT_EQ(text, "sylvite: info: 3 kernels\nsylvite: warning: odd\n");
  EXPECT_FALSE(is_logged(LogLevel::debug));
  EXPECT_TRUE(is_logged(LogLevel::warning));
}

TEST_F(LogTest, NothingInAMessageDrivesTheTerminal) {
  EXPECT_EQ(written([] {
              set_up_log(LogLevel::warning, false);
              log_line(LogLevel::warning, "\x1b[2Jname");
            }),
            "sylvite: warning: ?[2Jname\n");
}

TEST_F(LogTest, LinesOfJsonParse) {
  const std::string text = written([] {
    set_up_log(LogLevel::debug, true);
    log_line(LogLevel::debug, "a \"name\"\nof \xff bytes");
  });
  const nlohmann::json line = nlohmann::json::parse(text);
  EXPECT_EQ(line.at("log"), "debug");
  EXPECT_THAT(line.at("message").get<std::string>(), testing::StartsWith("a \"name\"\nof "));
}

}  // namespace
}  // namespace sylvite::log_test
