//! Kernels on pixels, in the instructions that the processor has.
//!
//! The code for frames is generic over [`Simd`], so that it is compiled once for any processor and
//! once for those with more instructions. Both give the same bits.

use super::gray::write_gray;

/// Rows of an image that are computed at once: a vector has one value of each.
pub(super) const ROWS: usize = 8;

/// The steps that are written in the instructions of a processor. The others are loops that the
/// compiler turns into vector instructions.
pub(super) trait Simd: Copy {
    /// As [`write_gray`].
    fn gray(self, pixels: &[u8], second: Option<&[u8]>, gray: &mut [u8]);

    /// Brings the sums of each column together: `columns[x][row] = rows[row][x]`. The rows, all as
    /// long as `columns`, follow each other.
    fn columns(self, rows: &[u16], columns: &mut [[f32; ROWS]]);

    /// The way back: `lines[row][x] = levels[x][row]`.
    fn lines(self, levels: &[[u8; ROWS]], lines: &mut [u8]);
}

/// Any processor.
#[derive(Clone, Copy)]
pub(super) struct Plain;

impl Simd for Plain {
    #[inline(always)]
    fn gray(self, pixels: &[u8], second: Option<&[u8]>, gray: &mut [u8]) {
        write_gray(pixels, second, gray);
    }

    #[inline(always)]
    fn columns(self, rows: &[u16], columns: &mut [[f32; ROWS]]) {
        transpose(rows, columns, f32::from);
    }

    #[inline(always)]
    fn lines(self, levels: &[[u8; ROWS]], lines: &mut [u8]) {
        for (line, row) in lines.chunks_exact_mut(levels.len()).zip(0..ROWS) {
            for (pixel, levels) in line.iter_mut().zip(levels) {
                *pixel = levels[row];
            }
        }
    }
}

/// `columns[x][row] = real(rows[row][x])`.
#[inline(always)]
pub(super) fn transpose<S: Copy, R>(
    rows: &[S],
    columns: &mut [[R; ROWS]],
    real: impl Fn(S) -> R + Copy,
) {
    let width = columns.len();
    for (row, sums) in rows.chunks_exact(width).take(ROWS).enumerate() {
        for (column, &sum) in columns.iter_mut().zip(sums) {
            column[row] = real(sum);
        }
    }
}

/// A kernel that is generic over the processor.
pub(super) trait ImageKernel {
    /// Does it.
    fn run<L: Simd>(self, simd: L);
}
