// SPDX-License-Identifier: Apache-2.0
// What control groups leave of memory, and rings that take no more than an eighth of it.
#include "transport/memory_limit.h"

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "bootstrap/membership.h"
#include "check.h"

using coll::available_in_groups;
using coll::fitting_slot;
using coll::SegmentShape;

namespace {

constexpr std::size_t kUnknown = std::numeric_limits<std::size_t>::max();

// A folder of control groups that the test writes.
class Groups {
 public:
  Groups() : root_(std::filesystem::temp_directory_path() / unique()) {
    std::filesystem::create_directory(root_);
  }
  ~Groups() { std::filesystem::remove_all(root_); }
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;

  void put(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void unified(const std::string& group, const std::string& limit, const std::string& use) {
    put(group + "/memory.max", limit + "\n");
    put(group + "/memory.current", use + "\n");
  }
  std::size_t left(std::string_view says) const {
    return available_in_groups(says, root_.string());
  }

 private:
  static std::string unique() { return "coll-groups-" + std::to_string(coll::random_group()); }
  std::filesystem::path root_;
};

TEST(without_groups_nothing_is_known) {
  const Groups groups;
  CHECK(groups.left("") == kUnknown);
  CHECK(groups.left("0::/\n") == kUnknown);
  CHECK(groups.left("garbage\n4:memory\n::\n") == kUnknown);
}

TEST(the_narrowest_group_around_counts) {
  Groups groups;
  groups.unified("job", "1000000", "400000");
  groups.unified("job/step", "max", "10");
  groups.unified("job/step/task", "900000", "100");
  CHECK(groups.left("0::/job/step/task\n") == 600000);
  groups.unified("job/step/task", "900000", "850000");
  CHECK(groups.left("0::/job/step/task\n") == 50000);
  groups.unified("job/step/task", "900000", "950000");  // it was narrowed since
  CHECK(groups.left("0::/job/step/task\n") == 0);
  CHECK(groups.left("0::/elsewhere\n") == kUnknown);
}

TEST(a_container_sees_its_own_group_as_the_root) {
  Groups groups;
  groups.put("memory.max", "5000\n");
  groups.put("memory.current", "1000\n");
  CHECK(groups.left("0::/../../outside\n") == 4000);
  groups.put("memory/memory.limit_in_bytes", "3000\n");
  groups.put("memory/memory.usage_in_bytes", "2500\n");
  CHECK(groups.left("9:name=systemd:/\n4:cpu,memory:/docker/12ab\n0::/\n") == 500);
}

TEST(pages_of_files_are_given_back) {
  Groups groups;
  groups.unified("job", "1000", "900");
  groups.put("job/memory.stat", "anon 300\nfile 600\ninactive_file 250\nactive_file 350\nx 7\n");
  CHECK(groups.left("0::/job\n") == 700);
  groups.put("memory/old/memory.limit_in_bytes", "1000\n");
  groups.put("memory/old/memory.usage_in_bytes", "990\n");
  groups.put("memory/old/memory.stat",
             "active_file 1\ntotal_inactive_file 5\ntotal_active_file 85\n");
  CHECK(groups.left("4:memory:/old\n") == 100);
}

TEST(rings_take_an_eighth_at_most) {
  const std::uint64_t most = SegmentShape{}.slot_bytes;
  CHECK(fitting_slot({.ranks = 8}, kUnknown) == most);
  CHECK(fitting_slot({.ranks = 1024}, 32UL << 30) == most);
  for (const std::uint32_t ranks : {1U, 2U, 4U, 64U, 1024U}) {
    std::uint64_t before = most;
    for (std::size_t left = 1UL << 36; left > 0; left /= 2) {
      const SegmentShape shape{.ranks = ranks};
      const std::uint64_t slot = fitting_slot(shape, left);
      CHECK(slot >= 4096 && slot <= before);
      CHECK(slot == 4096 || slot * shape.depth * ranks <= left / 8);
      CHECK(slot == most || 2 * slot * shape.depth * ranks > left / 8);
      before = slot;
    }
    CHECK(before == 4096);
  }
}

TEST(a_group_says_what_it_has_got) {
  SegmentShape shape{.ranks = 2, .slot_bytes = 0};
  const auto group = coll::local_group(shape);
  CHECK(group.front().segment.shape().slot_bytes == fitting_slot(shape, coll::available_memory()));
}

}  // namespace
