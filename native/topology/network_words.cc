// SPDX-License-Identifier: Apache-2.0
#include "topology/network_words.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/fitting.h"

namespace coll {
namespace {

constexpr std::string_view kShapes =
    "node:8, hosts:4x2, fat-tree:1024 or fat-tree:32x16x2, dragonfly:9x4x2, torus:8x8 or "
    "torus:4x4x4, rails:16x8";

[[noreturn]] void refuse(std::string_view words, const std::string& why) {
  constexpr std::size_t kShown = 60;
  throw Error(Status::invalid_argument,
              "topology '" + std::string(words.substr(0, fitting(words, kShown))) + "': " + why);
}

// What can be set behind the dimensions, and what it stands for in seconds, or bytes per second.
struct Settings {
  PortCosts ports;
  RankCosts ranks = {.overhead = {.message = 0.5e-6}, .fold = 1e-10, .copy = 0.5e-10};
  double oversubscription = 1;
};

struct Setting {
  std::string_view name;
  void (*set)(Settings& s, double value);
};

constexpr std::array kSettings = {
    Setting{"gbit", [](Settings& s, double v) { s.ports.rate = v * 1e9 / 8; }},
    Setting{"us", [](Settings& s, double v) { s.ports.latency = v * 1e-6; }},
    Setting{"near_gbyte", [](Settings& s, double v) { s.ports.near_rate = v * 1e9; }},
    Setting{"near_us", [](Settings& s, double v) { s.ports.near_latency = v * 1e-6; }},
    Setting{"overhead_us", [](Settings& s, double v) { s.ranks.overhead.message = v * 1e-6; }},
    Setting{"fold_gbyte", [](Settings& s, double v) { s.ranks.fold = 1e-9 / v; }},
    Setting{"copy_gbyte", [](Settings& s, double v) { s.ranks.copy = 1e-9 / v; }},
    Setting{"oversubscription", [](Settings& s, double v) { s.oversubscription = v; }},
};

class Reader {
 public:
  explicit Reader(std::string_view words) : words_(words), rest_(words) {}

  std::string_view shape() {
    const std::size_t end = rest_.find(':');
    if (end == std::string_view::npos) refuse(words_, "write for instance " + std::string(kShapes));
    const std::string_view name = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return name;
  }

  // "8x4": numbers of which the product is that of the ranks.
  std::vector<int> sides() {
    std::vector<int> sides;
    long ranks = 1;
    do {
      sides.push_back(side());
      ranks *= sides.back();
      if (ranks > kMostSimulatedRanks) {
        refuse(words_, "it has more than " + std::to_string(kMostSimulatedRanks) + " ranks");
      }
    } while (passed('x'));
    return sides;
  }

  Settings settings() {
    Settings s;
    while (passed(',')) set(s);
    if (!rest_.empty()) refuse(words_, "'" + shown() + "' is left over");
    return s;
  }

 private:
  bool passed(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::string shown() const { return std::string(rest_.substr(0, fitting(rest_, 30))); }

  int side() {
    int value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc() || value < 1) {
      refuse(words_, "'" + shown() + "' is no number of ranks, hosts or switches, 1 to " +
                         std::to_string(std::numeric_limits<int>::max()));
    }
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }

  void set(Settings& s) {
    const std::size_t end = rest_.find('=');
    const std::string_view name = rest_.substr(0, end);
    for (std::size_t i = 0; i < kSettings.size(); ++i) {
      const Setting& known = kSettings[i];
      if (known.name != name || end == std::string_view::npos) continue;
      if (std::exchange(given_[i], true)) {
        refuse(words_, std::string(name) + " is there twice: leave one out");
      }
      rest_.remove_prefix(end + 1);
      known.set(s, value(name));
      return;
    }
    std::string names;
    for (const Setting& known : kSettings) {
      names += (names.empty() ? "" : ", ") + std::string(known.name);
    }
    refuse(words_, "'" + shown() + "' is none of " + names + ", each with = and a number");
  }

  double value(std::string_view name) {
    double value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    const bool latency = name.ends_with("us");
    if (error != std::errc() || !std::isfinite(value) || value < 0 || (value == 0 && !latency)) {
      refuse(words_, std::string(name) + "=" + shown() + " is no number" +
                         (latency ? " from 0 on" : " above 0"));
    }
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }

  std::string_view words_, rest_;
  std::array<bool, kSettings.size()> given_{};
};

// Of a fat tree that is given by its hosts alone: 32 at a leaf, 32 leaves in a pod.
std::vector<int> tree_sides(std::string_view words, std::vector<int> sides) {
  if (sides.size() == 1) {
    constexpr int kPorts = 32;
    const int hosts = std::min(sides[0], kPorts);
    const int leaves = std::min(sides[0] / hosts, kPorts);
    const int pods = sides[0] / hosts / leaves;
    if (hosts * leaves * pods != sides[0]) {
      refuse(words,
             "a fat tree that is given by its hosts alone has up to 32 of them, a multiple of 32 "
             "up to 1024, or a multiple of 1024; else write hosts of a leaf x leaves of a pod x "
             "pods: fat-tree:24x5");
    }
    return {hosts, leaves, pods};
  }
  while (sides.size() < 3) sides.push_back(1);
  if (sides.size() > 3) refuse(words, "a fat tree has three levels at most");
  return sides;
}

std::unique_ptr<Network> made(std::string_view words, std::string_view shape,
                              const std::vector<int>& sides, const Settings& s) {
  const auto wants = [&](std::size_t count, const char* what) {
    if (sides.size() != count) refuse(words, std::string("write ") + what);
  };
  if (shape == "node") {
    wants(1, "the ranks of a node: node:8");
    return node_network(sides[0], s.ports);
  }
  if (shape == "hosts") {
    wants(2, "hosts x ranks of a host: hosts:4x2");
    return hosts_network(sides[0], sides[1], s.ports);
  }
  if (shape == "fat-tree") {
    const std::vector<int> three = tree_sides(words, sides);
    return fat_tree_network(three[0], three[1], three[2], s.oversubscription, s.ports);
  }
  if (shape == "torus") {
    if (sides.size() > 4) refuse(words, "a torus has four dimensions at most");
    return torus_network(sides, s.ports);
  }
  if (shape == "dragonfly") {
    wants(3, "groups x routers of a group x hosts of a router: dragonfly:9x4x2");
    return dragonfly_network(sides[0], sides[1], sides[2], s.ports);
  }
  if (shape == "rails") {
    wants(2, "nodes x GPUs of a node: rails:16x8");
    return rails_network(sides[0], sides[1], s.ports);
  }
  refuse(words, "there is no such shape; write for instance " + std::string(kShapes));
}

}  // namespace

std::unique_ptr<Network> network_of_words(std::string_view words) {
  Reader reader(words);
  const std::string_view shape = reader.shape();
  const std::vector<int> sides = reader.sides();
  const Settings settings = reader.settings();
  if (settings.oversubscription != 1 && shape != "fat-tree") {
    refuse(words, "oversubscription is for a fat-tree");
  }
  std::unique_ptr<Network> network = made(words, shape, sides, settings);
  network->costs = settings.ranks;
  return network;
}

}  // namespace coll
