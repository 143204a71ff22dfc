#include "tools/picture/picture.hpp"

#include <cstdio>
#include <map>

#include "tools/io/file_io.hpp"

namespace lacuna::tools {
namespace {

/// Two decimals at most, none where they are zero.
std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", x);
  std::string shown = text;
  while (shown.back() == '0') shown.pop_back();
  if (shown.back() == '.') shown.pop_back();
  return shown == "-0" ? "0" : shown;
}

std::string hex(Color color) {
  char text[8];
  std::snprintf(text, sizeof text, "#%02x%02x%02x", color.red, color.green, color.blue);
  return text;
}

std::string escape(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else
      out += c;
  }
  return out;
}

std::string attribute(const char* name, const std::string& value) {
  return std::string(" ") + name + "=\"" + value + "\"";
}

/// All rectangles of a color are one path, a fraction of the text.
std::map<std::string, std::string> paths_by_color(const std::vector<Rectangle>& rectangles) {
  std::map<std::string, std::string> paths;
  for (const Rectangle& r : rectangles)
    paths[hex(r.fill)] += "M" + number(r.x) + " " + number(r.y) + "h" + number(r.width) + "v" +
                          number(r.height) + "h" + number(-r.width) + "z";
  return paths;
}

std::string print_label(const Label& label) {
  const char* anchors[] = {"start", "middle", "end"};
  return "<text" + attribute("x", number(label.x)) + attribute("y", number(label.y)) +
         attribute("font-size", number(label.size)) +
         attribute("text-anchor", anchors[static_cast<int>(label.align)]) +
         (label.bold ? attribute("font-weight", "bold") : "") + ">" + escape(label.text) +
         "</text>\n";
}

}  // namespace

std::string print_svg(const Picture& picture) {
  const std::string width = number(picture.width), height = number(picture.height);
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\"" + attribute("width", width) +
                    attribute("height", height) +
                    attribute("viewBox", "0 0 " + width + " " + height) +
                    " font-family=\"sans-serif\">\n<rect width=\"100%\" height=\"100%\" "
                    "fill=\"#ffffff\"/>\n";
  // Edges of neighbours meet without a seam.
  out += "<g shape-rendering=\"crispEdges\">\n";
  for (const auto& [fill, path] : paths_by_color(picture.rectangles))
    out += "<path" + attribute("fill", fill) + attribute("d", path) + "/>\n";
  out += "</g>\n";
  for (const Line& l : picture.lines)
    out += "<line" + attribute("x1", number(l.x0)) + attribute("y1", number(l.y0)) +
           attribute("x2", number(l.x1)) + attribute("y2", number(l.y1)) +
           attribute("stroke", hex(l.color)) + attribute("stroke-width", number(l.width)) + "/>\n";
  for (const Dot& d : picture.dots)
    out += "<circle" + attribute("cx", number(d.x)) + attribute("cy", number(d.y)) +
           attribute("r", number(d.radius)) + attribute("fill", hex(d.color)) + "/>\n";
  for (const Label& label : picture.labels) out += print_label(label);
  return out + "</svg>\n";
}

bool write_picture(const Picture& picture, const std::string& path, Diagnostics& diagnostics) {
  if (path.ends_with(".svg")) return write_file(path, print_svg(picture), diagnostics);
  if (path.ends_with(".png")) {
    const auto bytes = print_png(picture, diagnostics);
    return bytes && write_file(path, *bytes, diagnostics);
  }
  Diagnostic& d = diagnostics.add(
      {.code = Code::kUnsupported, .message = path + ": a picture's name ends in .svg or .png"});
  d.helps.push_back("for example " + path + ".svg");
  return false;
}

}  // namespace lacuna::tools
