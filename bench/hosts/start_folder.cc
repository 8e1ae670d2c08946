// SPDX-License-Identifier: Apache-2.0
#include "start_folder.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

namespace start_bench {
namespace {

using namespace std::chrono_literals;
constexpr auto kPatience = 60s;
constexpr auto kPause = 2ms;

// A file appears whole, or not at all.
void write(const std::string& path, const std::vector<std::string>& lines) {
  const std::string draft = path + ".draft";
  std::ofstream file(draft);
  for (const std::string& line : lines) file << line << '\n';
  file.close();
  if (!file) throw std::runtime_error("cannot write " + draft);
  std::filesystem::rename(draft, path);
}

// Waits for a file and returns its lines.
std::vector<std::string> read(const std::string& path,
                              std::chrono::steady_clock::time_point deadline) {
  for (;; std::this_thread::sleep_for(kPause)) {
    if (std::ifstream file(path); file) {
      std::vector<std::string> lines;
      for (std::string line; std::getline(file, line);) lines.push_back(line);
      return lines;
    }
    if (std::chrono::steady_clock::now() > deadline) {
      throw std::runtime_error("nobody has written " + path);
    }
  }
}

}  // namespace

std::vector<std::string> exchange_in_folder(const std::string& folder, const Place& place,
                                            const std::string& text) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  const std::string all = folder + "/all", each = folder + "/rank";
  if (place.rank != 0) {
    write(each + std::to_string(place.rank), {text});
    return read(all, deadline);
  }
  std::vector<std::string> texts = {text};
  for (int rank = 1; rank < place.ranks; ++rank) {
    texts.push_back(read(each + std::to_string(rank), deadline).at(0));
  }
  write(all, texts);
  return texts;
}

}  // namespace start_bench
