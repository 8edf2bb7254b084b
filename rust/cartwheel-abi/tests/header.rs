//! C and C++ see the same tables as Rust: `include/cartwheel.h`, which `tools/header` writes.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::Command;

use cartwheel_abi as abi;
use cartwheel_core::DType;
use cartwheel_core::rng::Rng;

fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include")
}

/// Compiles and runs a program, and returns its lines.
fn run(name: &str, compiler: &str, standard: &str, program: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, binary) = (folder.join(name), folder.join(format!("{name}.out")));
    std::fs::write(&source, program).unwrap();
    let mut compile = Command::new(compiler);
    compile.args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"]).arg(include());
    let done = compile.arg(&source).arg("-o").arg(&binary).output().expect("a C compiler");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let ran = Command::new(&binary).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8(ran.stdout).unwrap().lines().map(str::to_owned).collect()
}

const SIZES: &str = r#"
    printf("%zu %zu\n", sizeof(struct cartwheel_sink), offsetof(struct cartwheel_sink, grow));
    printf("%zu %zu\n", sizeof(struct cartwheel_random_stream), offsetof(struct cartwheel_random_stream, half));
    printf("%zu %zu\n", sizeof(struct cartwheel_space), offsetof(struct cartwheel_space, high));
    printf("%zu %zu\n", sizeof(struct cartwheel_description), offsetof(struct cartwheel_description, render_fps));
    printf("%zu %zu\n", sizeof(struct cartwheel_batch), offsetof(struct cartwheel_batch, action_dtypes));
    printf("%zu %zu\n", sizeof(struct cartwheel_frame), offsetof(struct cartwheel_frame, bytes));
    printf("%zu %zu\n", sizeof(struct cartwheel_env), offsetof(struct cartwheel_env, reset_option_names));
    printf("%zu %zu\n", sizeof(struct cartwheel_plugin), offsetof(struct cartwheel_plugin, num_envs));
    printf("%u %u %d %d\n", CARTWHEEL_MAJOR, CARTWHEEL_MINOR, CARTWHEEL_SHOW, CARTWHEEL_FLOAT64);
"#;

fn sizes() -> Vec<String> {
    macro_rules! size {
        ($type:ident $last:ident) => {
            format!("{} {}", size_of::<abi::$type>(), offset_of!(abi::$type, $last))
        };
    }
    vec![
        size!(Sink grow),
        size!(RandomStream half),
        size!(Space high),
        size!(Description render_fps),
        size!(Batch action_dtypes),
        size!(Frame bytes),
        size!(Env reset_option_names),
        size!(Plugin num_envs),
        format!("{} {} {} {}", abi::MAJOR, abi::MINOR, abi::SHOW, abi::FLOAT64),
    ]
}

#[test]
fn c_sees_the_same_tables_and_draws_the_same_random_numbers() {
    let stream = Rng::from_seed(42).stream();
    let program = format!(
        r#"#include <stdio.h>
        #include <stdlib.h>
        #include "cartwheel.h"
        #include "cartwheel.h" // twice, as two headers of an author may
        static void grow(struct cartwheel_sink *sink, size_t more) {{
            sink->capacity = sink->len + more;
            sink->bytes = (uint8_t *)realloc(sink->bytes, sink->capacity);
        }}
        int main(void) {{
            {SIZES}
            struct cartwheel_random_stream stream = {{ {{ {}u, {}u }}, {{ {}u, {}u }}, 0, 0 }};
            for (int at = 0; at < 100; ++at) printf("%.17g\n", cartwheel_random(&stream));
            struct cartwheel_sink sink = {{ sizeof sink, NULL, 0, 0, grow }};
            struct cartwheel_batch batch;
            memset(&batch, 0, sizeof batch);
            batch.infos = &sink; batch.info_row = 7;
            size_t at = cartwheel_info_begin(&batch, 2);
            cartwheel_info_int(&batch, "int", -5);
            cartwheel_info_float(&batch, "float", 0.5);
            cartwheel_info_text(&batch, "text", "value");
            const size_t shape[] = {{ 2, 3 }};
            const int16_t mask[] = {{ 1, 0, 1, 0, 0, -2 }};
            cartwheel_info_array(&batch, "array", CARTWHEEL_INT16, 2, shape, mask);
            cartwheel_info_array(&batch, "number", CARTWHEEL_BOOL, 0, NULL, "\1");
            cartwheel_info_end(&batch, at);
            for (size_t byte = 0; byte < sink.len; ++byte) printf("%d ", sink.bytes[byte]);
            printf("\n");
            double number = 0.0;
            sink.len = 0;
            cartwheel_value_float(&sink, -2.5);
            int is_read = cartwheel_read_number(sink.bytes, sink.len, &number);
            printf("%d %g\n", is_read, number);
            sink.bytes[0] = 3; // an integer
            memcpy(sink.bytes + 1, &(int64_t){{ -7 }}, 8);
            is_read = cartwheel_read_number(sink.bytes, sink.len, &number);
            printf("%d %g\n", is_read, number);
            printf("%d\n", cartwheel_read_number(sink.bytes, 8, &number));
            uint8_t scalar[6] = {{ 6, CARTWHEEL_FLOAT32 }}; // of NumPy
            memcpy(scalar + 2, &(float){{ 0.25f }}, 4);
            is_read = cartwheel_read_number(scalar, 6, &number);
            printf("%d %g\n", is_read, number);
            scalar[1] = CARTWHEEL_INT32;
            printf("%d\n", cartwheel_read_number(scalar, 6, &number));
            return (int)cartwheel_fail(&sink, "") - 1;
        }}"#,
        stream.state[0], stream.state[1], stream.increment[0], stream.increment[1]
    );
    let found = run("tables.c", "cc", "-std=gnu11", &program);
    let (tables, rest) = found.split_at(9);
    assert_eq!(tables, sizes());
    let mut rng = Rng::from_seed(42);
    for drawn in &rest[..100] {
        assert_eq!(drawn.parse::<f64>().unwrap().to_bits(), rng.random().to_bits());
    }
    let mut infos = cartwheel_core::info::InfoWriter::new();
    let record = infos.begin(cartwheel_core::info::RecordKind::Info, 9, 0);
    infos.key("int");
    infos.int(-5);
    infos.key("float");
    infos.float(0.5);
    infos.key("text");
    infos.text("value");
    infos.key("array");
    let mask: Vec<u8> = [1_i16, 0, 1, 0, 0, -2].into_iter().flat_map(i16::to_ne_bytes).collect();
    infos.array(DType::I16, &[2, 3], &mask);
    infos.key("number");
    infos.array(DType::Bool, &[], &[1]);
    infos.end(record);
    let bytes: Vec<String> = infos.stream().iter().map(u8::to_string).collect();
    assert_eq!(rest[100].trim(), bytes.join(" "));
    assert_eq!(rest[101..], ["1 -2.5", "1 -7", "0", "1 0.25", "0"]);
}

/// Any other name could be one of the author's, or of another header.
#[test]
fn every_name_that_c_defines_begins_with_cartwheel() {
    let header = std::fs::read_to_string(include().join("cartwheel.h")).unwrap();
    let defined: Vec<_> = header.lines().filter_map(|line| line.strip_prefix("#define ")).collect();
    assert!(defined.contains(&"CARTWHEEL_TEXT 6"), "{defined:?}");
    assert!(defined.iter().all(|name| name.starts_with("CARTWHEEL_")), "{defined:?}");
}

/// Fields are appended to tables and never moved: a plugin that was built before has them there.
#[test]
#[cfg(target_pointer_width = "64")]
fn no_field_has_moved_since_it_was_added() {
    macro_rules! fields {
        ($type:ident: $($field:ident $at:literal)+) => {
            $(assert_eq!(
                offset_of!(abi::$type, $field),
                $at,
                concat!(stringify!($type), "::", stringify!($field))
            );)+
        };
    }
    fields!(Sink: struct_size 0 bytes 8 len 16 capacity 24 grow 32);
    fields!(RandomStream: state 0 increment 16 half 32 has_half 36);
    fields!(Space: kind 0 dtype 4 key 8 children 16 dimensions 24 shape 32 bounds 40 low 48 high 56);
    fields!(Description: struct_size 0 observation 8 observation_nodes 16 action 24 action_nodes 32);
    fields!(Description: parameters 40 num_parameters 48 render_modes 56 num_render_modes 64);
    fields!(Description: action_floats 72 agents 80 num_agents 88 render_fps 96);
    fields!(Batch: struct_size 0 first 8 rows 16 next 24 commands 32 actions 40 observations 48);
    fields!(Batch: rewards 56 terminations 64 truncations 72 streams 80 reset_options 88);
    fields!(Batch: info_row 96 infos 104 error 112 action_dtypes 120);
    fields!(Frame: struct_size 0 height 8 width 16 bytes 24);
    fields!(Env: struct_size 0 id 8 default_options 16 max_episode_steps 24 block 28);
    fields!(Env: reward_threshold 32 option_names 40 kind_new 48 kind_free 56 kind_describe 64);
    fields!(Env: rows_new 72 rows_free 80 run 88 reset_options_new 96 reset_options_free 104);
    fields!(Env: row_replace 112 parameter_get 120 parameter_set 128 row_save 136 row_load 144);
    fields!(Env: row_render 152 reset_option_names 160);
    fields!(Plugin: struct_size 0 major 8 minor 12 name 16 version 24 needs_minor 32 env_size 36);
    fields!(Plugin: envs 40 num_envs 48);
    // A space and a stream have no size of their own: nothing can be appended to them.
    assert_eq!((size_of::<abi::Space>(), size_of::<abi::RandomStream>()), (64, 40));
    assert_eq!([abi::OK, abi::FAILED, abi::PANICKED], [0, 1, 2]);
    assert_eq!([abi::STEP, abi::RESET, abi::LEAVE, abi::SHOW], [0, 1, 2, 3]);
    let kinds = [abi::BOX, abi::DISCRETE, abi::MULTI_DISCRETE, abi::MULTI_BINARY];
    assert_eq!(kinds, [0, 1, 2, 3]);
    assert_eq!([abi::TUPLE, abi::DICT, abi::TEXT], [4, 5, 6]);
    assert_eq!([abi::BOOL, abi::INT8, abi::INT16, abi::INT32, abi::INT64], [0, 1, 2, 3, 4]);
    assert_eq!([abi::UINT8, abi::UINT16, abi::UINT32, abi::UINT64], [5, 6, 7, 8]);
    assert_eq!([abi::FLOAT32, abi::FLOAT64], [10, 11]);
}

#[test]
fn exceptions_of_cpp_become_codes() {
    let program = format!(
        r#"#include <cstdio>
        #include <cstddef>
        #include <stdexcept>
        #include "cartwheel.h"
        static uint8_t memory[100];
        static void grow(struct cartwheel_sink *sink, size_t) {{ sink->bytes = memory; sink->capacity = 100; }}
        int main() {{
            {SIZES}
            struct cartwheel_sink sink = {{ sizeof sink, nullptr, 0, 0, grow }};
            uint32_t code = cartwheel::guarded(&sink, []() -> uint32_t {{ throw std::runtime_error("too far"); }});
            std::printf("%u %.*s\n", code, (int)sink.len, (char *)sink.bytes);
            sink.len = 0;
            void *made = cartwheel::guarded_pointer(&sink, []() -> void * {{ throw 3; }});
            std::printf("%d %.*s\n", made == nullptr, (int)sink.len, (char *)sink.bytes);
            made = cartwheel::guarded_pointer(&sink, [&] {{ return (void *)&sink; }});
            return made == &sink ? 0 : 1;
        }}"#
    );
    let found = run("tables.cpp", "c++", "-std=c++17", &program);
    assert_eq!(found[..9], sizes());
    assert_eq!(found[9], format!("{} too far", abi::PANICKED));
    assert_eq!(found[10], "1 an exception that is not a std::exception");
}
