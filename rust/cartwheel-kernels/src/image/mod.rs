//! Images of many environments at once: the maximum of two frames, gray, another size.
//!
//! ```text
//! frames[N, H, W, C] ─┐
//!                     ├─▶ max ─▶ gray ─▶ area resize ─▶ [N, H', W'], [N, H', W', C] or [N, C, H', W']
//! second[N, H, W, C] ─┘
//! ```
//!
//! A [`Plan`] has the weights of one pair of sizes. It carries out all steps row by row, so nothing
//! larger than eight rows lies between them, and divides the frames among threads.
//!
//! * Gray is Gymnasium's: `0.2125 r + 0.7154 g + 0.0721 b` in `f64`, rounded down. Every one of the
//!   16.7 million colors has the same bits as there.
//! * Each pixel of the result is the mean of the source over the area that the pixel covers, parts
//!   of pixels included, rounded to the nearest level, halves up. It is the exact mean: coverages
//!   are whole numbers, and their sums are not rounded. Where both sides shrink, or both grow, this
//!   is what `cv2.INTER_AREA` computes in floating point, up to one level. (Where one side shrinks
//!   and the other grows, `cv2` takes two pixels of each side instead.)
//!
//! ```
//! use cartwheel_kernels::image::{Plan, Shape};
//!
//! let plan = Plan::new(Shape { height: 2, width: 4, channels: 1 }, [1, 2], false, false)?;
//! let mut small = [0; 2];
//! plan.run(&[10, 20, 0, 0, 30, 40, 0, 1], None, None, &mut small)?;
//! assert_eq!(small, [25, 0]);
//! # Ok::<(), cartwheel_kernels::image::Error>(())
//! ```
#![expect(
    clippy::inline_always,
    reason = "code that is generic over the processor is compiled for its caller's instructions"
)]

#[cfg(target_arch = "x86_64")]
mod avx2;
mod axis;
mod dispatch;
mod error;
mod frame;
mod gray;
mod plan;
mod precision;
mod run;
mod simd;

pub use error::Error;
pub use plan::{Plan, Shape};
