// SPDX-License-Identifier: Apache-2.0
// SHA-256, HMAC and HKDF against the published vectors: FIPS 180-4 (NIST's examples), RFC 4231,
// RFC 5869. The digest of digests over all lengths was computed with Python's hashlib.
#include "base/sha256.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/hmac.h"
#include "bytes_of_test.h"
#include "check.h"

using namespace coll;
using test::bytes;
using test::from_hex;
using test::hex;

namespace {

std::string repeated(const std::string& digits, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += digits;
  return all;
}

// Bytes first, first + 1, ... below end, as hex digits.
std::string counting(int first, int end) {
  std::vector<std::uint8_t> all;
  for (int byte = first; byte < end; ++byte) all.push_back(static_cast<std::uint8_t>(byte));
  return hex(all);
}

Digest in_pieces(Bytes message, std::size_t piece) {
  Sha256 hash;
  for (std::size_t at = 0; at < message.size(); at += piece) {
    hash.update(message.subspan(at, std::min(piece, message.size() - at)));
    hash.update({});
  }
  return hash.finish();
}

}  // namespace

TEST(sha256_of_the_examples_of_nist) {
  CHECK(hex(sha256({})) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(hex(sha256(bytes("abc"))) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hex(sha256(bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))) ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(hex(sha256(bytes("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
                         "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu"))) ==
        "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
}

TEST(sha256_of_a_million_times_a_in_pieces_of_any_size) {
  const std::string text(1'000'000, 'a');
  const std::string expected = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
  CHECK(hex(sha256(bytes(text))) == expected);
  for (const std::size_t piece : {1U, 3U, 63U, 64U, 65U, 127U, 1009U, 999'999U}) {
    CHECK(hex(in_pieces(bytes(text), piece)) == expected);
  }
}

// Around the ends of one and of two blocks the padding changes.
TEST(sha256_of_all_lengths_to_259) {
  Sha256 all;
  for (int n = 0; n < 260; ++n) {
    std::vector<std::uint8_t> message;
    for (int i = 0; i < n; ++i) message.push_back(static_cast<std::uint8_t>(7 * i + n));
    const Digest digest = sha256(message);
    for (const std::size_t piece : {1U, 7U, 55U, 56U, 64U}) {
      CHECK(in_pieces(message, piece) == digest);
    }
    all.update(digest);
  }
  CHECK(hex(all.finish()) == "05276a25574d3f5608fda82219045118e93a9ca197ecafd98f2b51fea6680a3e");
}

TEST(hmac_of_rfc_4231) {
  const auto mac = [](const std::string& key, const std::string& message) {
    return hex(hmac_sha256(from_hex(key), from_hex(message)));
  };
  const auto text = [](const char* words) { return hex(bytes(words)); };
  CHECK(mac(repeated("0b", 20), text("Hi There")) ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(mac(text("Jefe"), text("what do ya want for nothing?")) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(mac(repeated("aa", 20), repeated("dd", 50)) ==
        "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  CHECK(mac(counting(1, 26), repeated("cd", 50)) ==
        "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
  CHECK(mac(repeated("0c", 20), text("Test With Truncation")).substr(0, 32) ==
        "a3b6167473100ee06e0c796c2955552b");
  CHECK(mac(repeated("aa", 131), text("Test Using Larger Than Block-Size Key - Hash Key First")) ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  CHECK(mac(repeated("aa", 131), text("This is a test using a larger than block-size key and a "
                                      "larger than block-size data. The key needs to be hashed "
                                      "before being used by the HMAC algorithm.")) ==
        "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

TEST(hkdf_of_rfc_5869) {
  const auto check_case = [](const std::string& key, const std::string& salt,
                             const std::string& info, const std::string& extracted,
                             const std::string& expanded) {
    const Digest even = hkdf_extract(from_hex(salt), from_hex(key));
    CHECK(hex(even) == extracted);
    std::vector<std::uint8_t> out(expanded.size() / 2);
    hkdf_expand(even, from_hex(info), out);
    CHECK(hex(out) == expanded);
  };
  check_case(repeated("0b", 22), counting(0, 13), counting(0xf0, 0xfa),
             "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5",
             "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"
             "34007208d5b887185865");
  check_case(counting(0, 0x50), counting(0x60, 0xb0), counting(0xb0, 0x100),
             "06a6b88c5853361a06104c9ceb35b45cef760014904671014a193f40c15fc244",
             "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c"
             "59045a99cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71"
             "cc30c58179ec3e87c14c01d5c1f3434f1d87");
  check_case(repeated("0b", 22), "", "",
             "19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04",
             "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"
             "9d201395faa4b61a96c8");
}

TEST(hkdf_ends_where_its_counter_does) {
  std::vector<std::uint8_t> out(std::size_t{255} * 32);
  hkdf_expand(bytes("key"), {}, out);
  out.push_back(0);
  CHECK(thrown<Error>([&] { hkdf_expand(bytes("key"), {}, out); }).status == Status::internal);
}

TEST(comparison_sees_every_bit_and_the_length) {
  const Digest digest = sha256(bytes("abc"));
  CHECK(equal_in_constant_time(digest, sha256(bytes("abc"))));
  CHECK(equal_in_constant_time({}, {}));
  for (std::size_t bit = 0; bit < 8 * digest.size(); ++bit) {
    Digest other = digest;
    other[bit / 8] = static_cast<std::uint8_t>(other[bit / 8] ^ (1U << (bit % 8)));
    CHECK(!equal_in_constant_time(digest, other));
  }
  CHECK(!equal_in_constant_time(digest, Bytes(digest).first(31)));
}
