// SPDX-License-Identifier: Apache-2.0
#include "ways.h"

namespace limits {
std::vector<Way> ways_of(Collective collective, std::size_t bytes) {
  constexpr std::size_t K = 1024;
  std::vector<Way> ways;
  if (bytes <= 64 * K) {
    for (const std::size_t slots : {4, 64}) ways.push_back({Form::in_line, bytes, slots, 0, 0});
  }
  const bool small = bytes <= 16 * K, large = bytes > 256 * K;
  const std::vector<std::size_t> chunks = small   ? std::vector{bytes}
                                          : large ? std::vector{64 * K, 256 * K}
                                                  : std::vector{16 * K, 64 * K};
  std::vector<Form> forms = {Form::pipeline};
  if (collective == Collective::allreduce && !small) forms.push_back(Form::two_shot);
  for (const Form form : forms) {
    for (const std::size_t chunk : chunks) {
      for (const std::size_t slots : {4, 16}) {
        ways.push_back({form, chunk, slots, false, false});
        if (small) continue;
        ways.push_back({form, chunk, slots, true, false});
        if (large) ways.push_back({form, chunk, slots, true, true});
      }
    }
  }
  return ways;
}

std::string name_of(const Way& way) {
  constexpr std::size_t K = 1024;
  const char* forms[] = {"flag in line", "pipeline", "two-shot"};
  std::string text = forms[static_cast<std::size_t>(way.form)];
  if (way.form != Form::in_line) {
    text += way.chunk < K ? " " + std::to_string(way.chunk) + " B"
                          : " " + std::to_string(way.chunk / K) + " KiB";
  }
  text += " x " + std::to_string(way.slots);
  if (way.stream_stage) text += ", stage streamed";
  if (way.stream_out) text += ", result streamed";
  return text;
}

}  // namespace limits
