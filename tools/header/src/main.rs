//! Writes `rust/cartwheel-abi/include/cartwheel.h`, which C sees, from the tables of `cartwheel-abi`.
//!
//! `cargo run -p abi-header`. With `-- --check` it changes nothing, and fails if the header is older
//! than the tables; `make test-merge` does that. A crate of its own, since cbindgen takes longer to
//! compile than any test of `cartwheel-abi`.

use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let abi = here.join("../../rust/cartwheel-abi");
    let mut config = cbindgen::Config::from_file(here.join("cbindgen.toml"))?;
    config.trailer = Some(std::fs::read_to_string(here.join("trailer.h"))?.trim_end().to_owned());
    let builder = cbindgen::Builder::new().with_config(config).with_src(abi.join("src/lib.rs"));
    let mut made = Vec::new();
    builder.generate()?.write(&mut made);
    let capsule = format!("#define CARTWHEEL_CAPSULE {:?}", cartwheel_abi::CAPSULE.to_str()?);
    if !String::from_utf8_lossy(&made).contains(&capsule) {
        return Err(format!("tools/header/trailer.h lacks `{capsule}`").into());
    }
    let header = abi.join("include/cartwheel.h");
    if std::env::args().all(|argument| argument != "--check") {
        std::fs::write(header, made)?;
    } else if std::fs::read(header)? != made {
        return Err(
            "include/cartwheel.h is older than src/lib.rs: run `cargo run -p abi-header`".into()
        );
    }
    Ok(())
}
