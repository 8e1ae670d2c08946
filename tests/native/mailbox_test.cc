// SPDX-License-Identifier: Apache-2.0
// What a mailbox does with messages: it brings them, keeps them in their rings, sets them aside,
// and tells what is wrong with them.
#include <cerrno>
#include <cstdlib>
#include <new>
#include <string>

#include "base/error.h"
#include "mailbox_of_test.h"
#include "transport/faults.h"

namespace {

constexpr std::size_t kTooMuch = std::size_t{1} << 40;

}  // namespace

// The address sanitizer ends a program that asks for so much.
void* operator new[](std::size_t bytes) {
  void* memory = bytes >= kTooMuch ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using namespace coll;
using namespace coll::testing;

TEST(every_pair_has_a_ring_of_its_own) {
  for (const int p : {1, 2, 5, 33, 100}) {
    const SegmentShape shape{.ranks = static_cast<std::uint32_t>(p)};
    const Memory memory = Memory::allocate(Segment::bytes(shape));
    const Segment segment = Segment::create(memory.data(), shape, 1);
    const auto at = [&](const void* part) {
      return static_cast<std::size_t>(static_cast<const std::byte*>(part) -
                                      static_cast<const std::byte*>(memory.data()));
    };
    const std::size_t ring = segment.mail_bytes();
    CHECK(ring >= kPage && (ring & (ring - 1)) == 0);
    CHECK(p > 33 || ring >= 128 << 10);
    std::size_t end = at(segment.slot_ring(p - 1)) + shape.depth * shape.slot_bytes;
    for (int to = 0; to < p; ++to) {
      CHECK(at(&segment.mail(to)) >= end);
      end = at(&segment.mail(to)) + sizeof(MailLine);
      for (int from = 0; from < p; ++from) {
        CHECK(at(&segment.mail_cursor(from, to)) == end);
        end += 2 * kLine;
      }
      CHECK(end <= at(&segment.mail(to)) + segment.mail_control_bytes());
    }
    for (int to = 0; to < p; ++to) {
      for (int from = 0; from < p; ++from, end += ring) {
        if (to == 0 && from == 0) end = std::max(end, at(segment.mail_ring(0, 0)));
        CHECK(at(segment.mail_ring(from, to)) == end && end % kPage == 0);
      }
    }
    CHECK(end <= memory.size());
  }
  for (const std::uint64_t bytes : {0UL, 64UL, 2048UL, 4097UL, 12288UL}) {
    CHECK(Segment::bytes({.ranks = 2, .mail_bytes = bytes}) == 0);
  }
}

TEST(a_message_arrives) {
  for (const std::size_t bytes : {0UL, 1UL, 39UL, 40UL, 41UL, 64UL, 4000UL, 4096UL, 100000UL}) {
    Group group(2);
    Posts sends, receives;
    const Post& send = post_send(group, sends, 0, 1, 7, bytes);
    const Post& receive = post_receive(group, receives, 1, 0, 7, bytes);
    group.settle();
    CHECK(send.request.done && receive.request.done);
    CHECK(has_bytes_of(receive, send));
    CHECK(receive.request.source == 0 && receive.request.envelope.tag == 7);
    CHECK(group.box[0]->idle() && group.box[1]->idle());
  }
}

TEST(a_short_message_is_sent_before_anybody_asks) {
  Group group(2);
  Posts sends, receives;
  const Post& send = post_send(group, sends, 0, 1, 7, 1000);
  CHECK(group.box[0]->progress());
  CHECK(send.request.done);
  CHECK(!group.box[0]->progress());
  const Post& receive = post_receive(group, receives, 1, kAny, kAny, 2000);
  CHECK(!receive.request.done);
  CHECK(group.box[1]->progress());
  CHECK(has_bytes_of(receive, send));
  CHECK(receive.bytes[1000] == std::byte{0xEE});
}

TEST(a_long_message_waits_for_its_receiver) {
  Group group(2);
  Posts sends, receives;
  const Post& send = post_send(group, sends, 0, 1, 7, 10 * kRing);
  group.settle();
  CHECK(!send.request.done);
  CHECK(send.request.moved < kRing);
  post_receive(group, receives, 1, 0, 7, 10 * kRing);
  group.settle();
  CHECK(send.request.done && has_bytes_of(receives[0], send));
  // The next one waits as well, for nobody asks for more than what it is.
  post_send(group, sends, 0, 1, 7, 10 * kRing);
  group.box[1]->look_for({0, 7});
  group.settle();
  CHECK(group.box[1]->find({0, 7}));
  CHECK(sends[1].request.moved < kRing);
}

TEST(what_lies_before_is_set_aside) {
  Group group(2);
  Posts sends, receives;
  for (const int tag : {1, 2, 1, 3}) post_send(group, sends, 0, 1, tag, 5 * kRing);
  const Post& last = post_receive(group, receives, 1, 0, 3, 5 * kRing);
  group.settle();
  CHECK(last.request.done && has_bytes_of(last, sends[3]));
  for (const Post& send : sends) CHECK(send.request.done);
  for (const int tag : {kAny, 1, 2}) post_receive(group, receives, 1, 0, tag, 5 * kRing);
  CHECK(has_bytes_of(receives[1], sends[0]));
  CHECK(has_bytes_of(receives[2], sends[2]));
  CHECK(has_bytes_of(receives[3], sends[1]));
}

TEST(half_a_message_that_is_set_aside_goes_on_to_its_receive) {
  Group group(2);
  Posts sends, receives;
  post_send(group, sends, 0, 1, 1, 3 * kRing);
  post_receive(group, receives, 1, 0, 2, 8);  // so the first one is set aside
  for (int i = 0; i < 3; ++i) {
    group.box[0]->progress();
    group.box[1]->progress();
  }
  const Post& receive = post_receive(group, receives, 1, kAny, 1, 3 * kRing);
  CHECK(receive.request.met && !receive.request.done);
  group.settle();
  CHECK(receive.request.done && has_bytes_of(receive, sends[0]));
  CHECK(!receives[0].request.met);
}

TEST(a_message_to_oneself_never_blocks) {
  Group group(2);
  Posts sends, receives;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, 9 * kRing}) {
    post_send(group, sends, 1, 1, 5, bytes);
  }
  group.settle();
  for (const Post& send : sends) CHECK(send.request.done);
  for (int i = 0; i < 3; ++i) post_receive(group, receives, 1, kAny, 5, 9 * kRing);
  group.settle();
  for (std::size_t i = 0; i < 3; ++i) CHECK(has_bytes_of(receives[i], sends[i]));
}

TEST(a_message_that_is_too_long_is_lost_alone) {
  for (const bool aside : {false, true}) {
    for (const std::size_t bytes : {std::size_t{9}, 3 * kRing}) {
      Group group(2);
      Posts sends, receives;
      post_send(group, sends, 0, 1, 1, bytes);
      post_send(group, sends, 0, 1, 2, 8);
      if (aside) post_receive(group, receives, 1, 0, 2, 8);
      group.settle();
      const Post& small = post_receive(group, receives, 1, 0, 1, 8);
      group.settle();
      CHECK(small.request.done && small.request.too_long());
      CHECK(small.request.envelope.bytes == bytes);
      CHECK(small.bytes == std::vector<std::byte>(8, std::byte{0xEE}));
      if (!aside) post_receive(group, receives, 1, 0, 2, 8);
      group.settle();
      CHECK(sends[0].request.done && sends[1].request.done);
      CHECK(has_bytes_of(receives[aside ? 0 : 1], sends[1]));
      CHECK(group.box[1]->idle());
    }
  }
}

TEST(a_probe_leaves_the_message_where_it_is) {
  Group group(3);
  Posts sends, receives;
  Mailbox& box = *group.box[2];
  const Post& send = post_send(group, sends, 0, 2, 4, 20 * kRing);
  post_send(group, sends, 1, 2, 9, 1);
  const Pattern pattern{kAny, 4};
  box.look_for(pattern);
  CHECK(!box.find(pattern));
  group.settle();
  const auto found = box.find(pattern);
  CHECK(found && found->source == 0 && found->envelope.bytes == 20 * kRing);
  CHECK(send.request.moved < kRing);  // nothing was set aside
  box.look_no_more();
  CHECK(box.find({1, kAny})->envelope.tag == 9);
  CHECK(!box.find({1, 4}) && !box.find({2, kAny}));
  post_receive(group, receives, 2, kAny, 4, 20 * kRing);
  group.settle();
  CHECK(has_bytes_of(receives[0], send) && box.idle());
}

TEST(a_probe_looks_behind_other_messages) {
  Group group(2);
  Posts sends;
  post_send(group, sends, 0, 1, 1, 3 * kRing);
  post_send(group, sends, 0, 1, 2, 4);
  const Pattern pattern{0, 2};
  group.box[1]->look_for(pattern);
  group.settle();
  CHECK(group.box[1]->find(pattern)->envelope.bytes == 4);
  CHECK(group.box[1]->find({0, kAny})->envelope.tag == 1);
  group.box[1]->look_no_more();
}

TEST(no_sender_is_served_last_for_ever) {
  Group group(4);
  Posts sends, receives;
  for (int i = 0; i < 200; ++i) {
    for (const int from : {0, 1, 2}) post_send(group, sends, from, 3, 0, kRing / 2);
  }
  std::vector<int> got(4, 0);
  for (int i = 0; i < 60; ++i) {
    const Post& receive = post_receive(group, receives, 3, kAny, kAny, kRing);
    while (!receive.request.done) {
      for (auto& box : group.box) box->progress();
    }
    ++got[static_cast<std::size_t>(receive.request.source)];
  }
  for (const int from : {0, 1, 2}) CHECK(got[static_cast<std::size_t>(from)] >= 10);
}

// ---- what ends the group -----------------------------------------------------------------------

TEST(another_dtype_is_a_fault) {
  for (const bool before : {false, true}) {
    Group group(2);
    Posts sends, receives;
    if (before) post_send(group, sends, 0, 1, 6, 8).request.envelope.dtype = 1;
    Post& receive = post_receive(group, receives, 1, 0, kAny, 8);
    if (!before) post_send(group, sends, 0, 1, 6, 8).request.envelope.dtype = 1;
    group.settle();
    const Fault& fault = group.box[1]->fault();
    CHECK(fault.trouble == Trouble::other_dtype && fault.source == 0);
    CHECK(fault.request == &receive.request && fault.envelope.dtype == 1);
    CHECK(receive.request.envelope.dtype == 4);
    CHECK(receive.bytes[0] == std::byte{0xEE});
  }
}

TEST(a_ring_that_was_overwritten_is_a_fault) {
  Group group(2);
  Posts sends, receives;
  post_send(group, sends, 0, 1, 6, 8);
  group.box[0]->progress();
  Envelope envelope{};
  std::memcpy(&envelope, group.segment.mail_ring(0, 1), sizeof envelope);
  CHECK(envelope.number == 1);
  for (const Envelope& nonsense :
       {Envelope{6, 4, 8, 0}, Envelope{6, 4, 8, 2}, Envelope{-3, 4, 8, 1}}) {
    std::memcpy(group.segment.mail_ring(0, 1), &nonsense, sizeof nonsense);
    Mailbox box(group.segment, 1);
    Request receive;
    box.receive(receive);
    box.progress();
    CHECK(box.fault().trouble == Trouble::no_envelope && box.fault().source == 0);
    CHECK(!receive.met);
  }
}

TEST(no_memory_to_set_aside_is_a_fault) {
  Group group(2);
  Posts sends, receives;
  post_send(group, sends, 0, 1, 6, 8);
  group.box[0]->progress();
  Envelope envelope{};
  std::memcpy(&envelope, group.segment.mail_ring(0, 1), sizeof envelope);
  envelope.bytes = kTooMuch;
  std::memcpy(group.segment.mail_ring(0, 1), &envelope, sizeof envelope);
  post_receive(group, receives, 1, 0, 7, 8);
  group.settle();
  CHECK(group.box[1]->fault().trouble == Trouble::no_memory);
}

TEST(a_ring_without_memory_is_refused_before_it_is_written) {
  Group group(2);
  Posts sends, receives;
  for (const int error : {ENOMEM, EFAULT}) {
    faults::arm({SystemCall::madvise, 1, error, false});
    const Error refused = thrown<Error>([&] { post_send(group, sends, 0, 1, 6, 8); });
    faults::clear();
    sends.pop_back();
    CHECK(refused.status == Status::out_of_memory);
    CHECK(std::string(refused.what()).find("messages to rank 1") != std::string::npos);
    CHECK(group.box[0]->idle());
  }
  // A kernel that cannot promise.
  faults::arm({SystemCall::madvise, 1, EINVAL, false});
  post_send(group, sends, 0, 1, 6, 8);
  faults::clear();
  post_receive(group, receives, 1, 0, 6, 8);
  group.settle();
  CHECK(has_bytes_of(receives[0], sends[0]));
}

}  // namespace
