// SPDX-License-Identifier: Apache-2.0
// The mailboxes of all ranks in one thread: nothing in them blocks, so every interleaving can be
// played.
#pragma once

#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "check.h"
#include "mailbox/mailbox.h"
#include "transport/memory.h"

namespace coll::testing {

inline constexpr std::size_t kRing = kPage;  // small: messages wrap around, and wait for room

// p mailboxes on one segment.
struct Group {
  explicit Group(std::uint32_t ranks, std::uint64_t mail_bytes = kRing) {
    SegmentShape shape{.ranks = ranks, .depth = 1, .inline_bytes = 64, .slot_bytes = 64};
    shape.mail_bytes = mail_bytes;
    memory = Memory::allocate(Segment::bytes(shape));
    segment = Segment::create(memory.data(), shape, 1);
    for (int rank = 0; rank < static_cast<int>(ranks); ++rank) {
      box.push_back(std::make_unique<Mailbox>(segment, rank));
    }
  }
  void settle() {
    for (bool moved = true; moved;) {
      moved = false;
      for (auto& b : box) moved = b->progress() || moved;
    }
  }

  Memory memory;
  Segment segment;
  std::vector<std::unique_ptr<Mailbox>> box;
};

// A message or a receive of the tests, with its bytes.
struct Post {
  Request request;
  std::vector<std::byte> bytes;
  int rank = 0;    // who posted it
  int number = 0;  // in the order of its rank's posting
  int met_at = -1;
};
using Posts = std::deque<Post>;  // a request must not move

inline std::byte content(int number, std::size_t i) {
  return static_cast<std::byte>((static_cast<std::size_t>(number) * 31 + i * 7) % 251);
}

inline Post& post_send(Group& group, Posts& posts, int from, int to, int tag, std::size_t bytes) {
  Post& post = posts.emplace_back();
  post.rank = from;
  post.number = static_cast<int>(posts.size());
  post.bytes.resize(bytes);
  for (std::size_t i = 0; i < bytes; ++i) post.bytes[i] = content(post.number, i);
  // The dtype is of no meaning here: it tells which message a receive has got.
  post.request.from = post.bytes.data();
  post.request.to = to;
  post.request.envelope = {.tag = tag, .dtype = 4, .bytes = bytes};
  group.box[static_cast<std::size_t>(from)]->send(post.request);
  return post;
}

inline Post& post_receive(Group& group, Posts& posts, int rank, int source, int tag,
                          std::size_t room) {
  Post& post = posts.emplace_back();
  post.rank = rank;
  post.number = static_cast<int>(posts.size());
  post.bytes.assign(room, std::byte{0xEE});
  post.request.into = post.bytes.data();
  post.request.room = room;
  post.request.pattern = {source, tag};
  post.request.envelope = {.dtype = 4};
  group.box[static_cast<std::size_t>(rank)]->receive(post.request);
  return post;
}

// The send whose message this receive has got.
inline const Post& message_of(const Posts& sends, const Post& receive) {
  std::uint64_t number = 0;
  for (const Post& send : sends) {
    if (send.rank != receive.request.source || send.request.to != receive.rank) continue;
    if (++number == receive.request.envelope.number) return send;
  }
  check::fail("a receive has met a message that nobody sent");
}

inline bool has_bytes_of(const Post& receive, const Post& send) {
  const std::size_t n = send.bytes.size();
  if (receive.request.envelope.bytes != n) return false;
  return n == 0 || std::memcmp(receive.bytes.data(), send.bytes.data(), n) == 0;
}

}  // namespace coll::testing
