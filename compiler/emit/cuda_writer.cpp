#include "compiler/emit/cuda_writer.hpp"

namespace lacuna {

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
  text_ += "#line " + std::to_string(place.line) + " \"";
  for (const char c : place.file) {
    if (c == '"' || c == '\\') text_ += '\\';
    text_ += c;
  }
  text_ += "\"\n";
}

}  // namespace lacuna
