#include "runtime/machine_peaks.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"

namespace sylvite::machine_peaks_test {
namespace {

MachinePeaks sample_peaks() {
  MachinePeaks peaks;
  peaks.cpu = "a CPU";
  peaks.threads = 2;
  peaks.operations = {{DType::f32, 100e9}, {DType::i8, 400e9}};
  peaks.l2_rate = 50e9;
  peaks.readings = {{1 << 20, 40e9}, {1 << 24, 10e9}};
  return peaks;
}

class KeptPeaks : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    make_folder(folder_);
  }
  [[nodiscard]] std::string file() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) return entry.path().string();
    return "";
  }
  const std::string folder_ = testing::TempDir() + "sylvite_kept_peaks";
  const Machine machine_ = detect_machine(1);
};

TEST(MachinePeaks, TextReadsBack) {
  EXPECT_EQ(read_peaks(peaks_text(sample_peaks())), sample_peaks());
}

TEST(MachinePeaks, DamagedTextIsNothing) {
  EXPECT_EQ(read_peaks(""), std::nullopt);
  EXPECT_EQ(read_peaks("{}"), std::nullopt);
  const std::string text = peaks_text(sample_peaks());
  EXPECT_EQ(read_peaks(text.substr(0, text.size() / 2)), std::nullopt);
  MachinePeaks peaks = sample_peaks();
  peaks.l2_rate = 0;
  EXPECT_EQ(read_peaks(peaks_text(peaks)), std::nullopt) << "no time would be long enough";
  peaks = sample_peaks();
  std::swap(peaks.readings[0], peaks.readings[1]);
  EXPECT_EQ(read_peaks(peaks_text(peaks)), std::nullopt);
}

TEST(MachinePeaks, OfTwoMeasurementsTheBetterRatesCount) {
  MachinePeaks other = sample_peaks();
  other.operations[DType::f32] = 120e9;
  other.operations[DType::i8] = 300e9;
  other.readings[1].rate = 12e9;
  const MachinePeaks best = better_of(sample_peaks(), other);
  EXPECT_EQ(best.operations.at(DType::f32), 120e9);
  EXPECT_EQ(best.operations.at(DType::i8), 400e9);
  EXPECT_EQ(best.readings[0].rate, 40e9);
  EXPECT_EQ(best.readings[1].rate, 12e9);
}

TEST_F(KeptPeaks, AreMeasuredOnce) {
  const MachinePeaks first = peaks_of(machine_, folder_);
  EXPECT_EQ(read_peaks(read_file(file())), first);
  EXPECT_EQ(first.cpu, machine_.cpu_name);
  EXPECT_GT(first.operations.at(DType::f32), 1e9);
  EXPECT_GT(first.l2_rate, 1e8);
  MachinePeaks fast = first;
  fast.l2_rate = 1e15;
  write_file(file(), peaks_text(fast));
  EXPECT_EQ(peaks_of(machine_, folder_), fast) << "not measured";
  const MachinePeaks again = peaks_of(machine_, folder_, true);
  EXPECT_EQ(again.l2_rate, 1e15) << "the better rate stays";
  EXPECT_GE(again.operations.at(DType::f32), first.operations.at(DType::f32));
}

TEST_F(KeptPeaks, ThoseOfAnotherMachineDoNotCount) {
  const MachinePeaks first = peaks_of(machine_, folder_);
  MachinePeaks other = first;
  other.cpu = "another CPU";
  other.l2_rate = 1e15;
  write_file(file(), peaks_text(other));
  EXPECT_LT(peaks_of(machine_, folder_).l2_rate, 1e15);
  EXPECT_EQ(read_peaks(read_file(file()))->cpu, machine_.cpu_name);
}

TEST_F(KeptPeaks, AFolderThatCannotBeWrittenKeepsNothing) {
  EXPECT_GT(peaks_of(machine_, "/proc/none").l2_rate, 0);
}

}  // namespace
}  // namespace sylvite::machine_peaks_test
