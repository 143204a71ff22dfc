// Picture -> PNG through cairo, opened when the first one is asked for: the command itself depends
// on no graphics library.
#include <cstddef>

#include "runtime/base/dynamic_library.hpp"
#include "tools/picture/picture.hpp"

namespace lacuna::tools {
namespace {

constexpr double kPixelsPerPoint = 2;
constexpr int kFormatRgb24 = 1;  // CAIRO_FORMAT_RGB24
constexpr int kSlantNormal = 0, kWeightNormal = 0, kWeightBold = 1, kAntialiasNone = 1;

// The part of cairo's C interface in use (cairo.h, stable since 1.2).
using Surface = void;
using Context = void;
struct TextExtents {
  double x_bearing, y_bearing, width, height, x_advance, y_advance;
};
using WriteFunction = int (*)(void* closure, const unsigned char* data, unsigned length);

struct Cairo {
  Surface* (*image_surface_create)(int format, int width, int height);
  int (*surface_write_to_png_stream)(Surface*, WriteFunction, void* closure);
  void (*surface_destroy)(Surface*);
  Context* (*create)(Surface*);
  void (*destroy)(Context*);
  void (*scale)(Context*, double x, double y);
  void (*set_source_rgb)(Context*, double red, double green, double blue);
  void (*set_antialias)(Context*, int mode);
  void (*rectangle)(Context*, double x, double y, double width, double height);
  void (*arc)(Context*, double x, double y, double radius, double from, double to);
  void (*move_to)(Context*, double x, double y);
  void (*line_to)(Context*, double x, double y);
  void (*set_line_width)(Context*, double width);
  void (*fill)(Context*);
  void (*stroke)(Context*);
  void (*paint)(Context*);
  void (*select_font_face)(Context*, const char* family, int slant, int weight);
  void (*set_font_size)(Context*, double size);
  void (*text_extents)(Context*, const char* text, TextExtents*);
  void (*show_text)(Context*, const char* text);
};

template <class F>
bool find(const DynamicLibrary& library, const char* name, F*& function) {
  function = reinterpret_cast<F*>(library.symbol(name));
  return function != nullptr;
}

bool find_all(const DynamicLibrary& library, Cairo& c) {
  return find(library, "cairo_image_surface_create", c.image_surface_create) &&
         find(library, "cairo_surface_write_to_png_stream", c.surface_write_to_png_stream) &&
         find(library, "cairo_surface_destroy", c.surface_destroy) &&
         find(library, "cairo_create", c.create) && find(library, "cairo_destroy", c.destroy) &&
         find(library, "cairo_scale", c.scale) &&
         find(library, "cairo_set_source_rgb", c.set_source_rgb) &&
         find(library, "cairo_set_antialias", c.set_antialias) &&
         find(library, "cairo_rectangle", c.rectangle) && find(library, "cairo_arc", c.arc) &&
         find(library, "cairo_move_to", c.move_to) && find(library, "cairo_line_to", c.line_to) &&
         find(library, "cairo_set_line_width", c.set_line_width) &&
         find(library, "cairo_fill", c.fill) && find(library, "cairo_stroke", c.stroke) &&
         find(library, "cairo_paint", c.paint) &&
         find(library, "cairo_select_font_face", c.select_font_face) &&
         find(library, "cairo_set_font_size", c.set_font_size) &&
         find(library, "cairo_text_extents", c.text_extents) &&
         find(library, "cairo_show_text", c.show_text);
}

int append(void* closure, const unsigned char* data, unsigned length) {
  static_cast<std::string*>(closure)->append(reinterpret_cast<const char*>(data), length);
  return 0;
}

void set_color(const Cairo& c, Context* context, Color color) {
  c.set_source_rgb(context, color.red / 255.0, color.green / 255.0, color.blue / 255.0);
}

void draw_label(const Cairo& c, Context* context, const Label& label) {
  c.select_font_face(context, "sans-serif", kSlantNormal, label.bold ? kWeightBold : kWeightNormal);
  c.set_font_size(context, label.size);
  TextExtents extents{};
  c.text_extents(context, label.text.c_str(), &extents);
  const double before[] = {0, extents.x_advance / 2, extents.x_advance};
  c.move_to(context, label.x - before[static_cast<int>(label.align)], label.y);
  c.show_text(context, label.text.c_str());
}

void draw(const Cairo& c, Context* context, const Picture& picture) {
  constexpr double kFullTurn = 6.283185307179586;
  c.scale(context, kPixelsPerPoint, kPixelsPerPoint);
  c.set_source_rgb(context, 1, 1, 1);
  c.paint(context);
  c.set_antialias(context, kAntialiasNone);
  for (const Rectangle& r : picture.rectangles) {
    set_color(c, context, r.fill);
    c.rectangle(context, r.x, r.y, r.width, r.height);
    c.fill(context);
  }
  c.set_antialias(context, 0);
  for (const Line& l : picture.lines) {
    set_color(c, context, l.color);
    c.set_line_width(context, l.width);
    c.move_to(context, l.x0, l.y0);
    c.line_to(context, l.x1, l.y1);
    c.stroke(context);
  }
  for (const Dot& d : picture.dots) {
    set_color(c, context, d.color);
    c.arc(context, d.x, d.y, d.radius, 0, kFullTurn);
    c.fill(context);
  }
  c.set_source_rgb(context, 0.1, 0.1, 0.1);
  for (const Label& label : picture.labels) draw_label(c, context, label);
}

}  // namespace

std::optional<std::string> print_png(const Picture& picture, Diagnostics& diagnostics) {
  const DynamicLibrary library = open_library("libcairo.so.2");
  Cairo c{};
  if (!library || !find_all(library, c)) {
    Diagnostic& d = diagnostics.add(
        {.code = Code::kUnsupported, .message = "a PNG needs cairo: " + library.error});
    d.helps.emplace_back("install libcairo2, or write an .svg, which needs nothing");
    return std::nullopt;
  }
  Surface* surface =
      c.image_surface_create(kFormatRgb24, static_cast<int>(picture.width * kPixelsPerPoint),
                             static_cast<int>(picture.height * kPixelsPerPoint));
  Context* context = c.create(surface);
  draw(c, context, picture);
  std::string bytes;
  const int status = c.surface_write_to_png_stream(surface, append, &bytes);
  c.destroy(context);
  c.surface_destroy(surface);
  if (status == 0) return bytes;
  diagnostics.add(
      {.code = Code::kUnsupported,
       .message = "cairo could not make a PNG (status " + std::to_string(status) + ")"});
  return std::nullopt;
}

}  // namespace lacuna::tools
