#include "compiler/emit/cuda/cuda_writer.hpp"

namespace lacuna {
namespace {

/// A string literal of any bytes, which an error of NVRTC shows as they are. Nothing in it ends the
/// literal or its line: what is not printable ASCII stands as three octal digits, and so does the
/// question mark of trigraphs.
std::string string_literal(std::string_view bytes) {
  std::string text = "\"";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_octal = byte < ' ' || byte > '~' || c == '?';
    if (is_octal || c == '"' || c == '\\') text += '\\';
    if (!is_octal) text += c;
    for (int shift = 6; is_octal && shift >= 0; shift -= 3)
      text += static_cast<char>('0' + ((byte >> shift) & 7));
  }
  return text + '"';
}

}  // namespace

Place CudaWriter::place_of(const char* pointer, std::string_view origin) const {
  const auto span = *pointer == '\0' ? document_.spans.end() : document_.spans.find(pointer);
  if (span == document_.spans.end()) return {"<" + std::string(origin) + ">", 1};
  return {document_.source.path, span->second.line};
}

void CudaWriter::line(const std::string& text, const Place& place) {
  if (place.file != file_ || place.file == document_.source.path) write_directive(place);
  line(text);
}

void CudaWriter::write_directive(const Place& place) {
  file_ = place.file;
  text_ += "#line " + std::to_string(place.line) + " " + string_literal(place.file) + "\n";
}

}  // namespace lacuna
