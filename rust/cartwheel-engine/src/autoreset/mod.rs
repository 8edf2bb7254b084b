//! Autoreset: when a finished row restarts. One state machine, three modes, every executor.
//!
//! ```text
//!             step ends the episode                     what the next step does
//! NEXT_STEP   terminal observation, flags; → over       resets, ignores the action; → running
//! SAME_STEP   terminal one kept aside, reset at once    an ordinary step
//! DISABLED    terminal observation, flags; → over       an error, or the same frame again
//! ```
//!
//! After an explicit reset a row is always running. A row whose environment failed stays `failed`
//! until an explicit reset succeeds, and the same holds for a row that is `unstarted`.
//!
//! # Commands and outcomes
//!
//! The machine works on columns, one byte or number for each row, and does not know how
//! environments are called. It plans a [`RowCommand`] for each row, its caller carries the commands out
//! and collects their [`Outcomes`], and the machine settles these:
//!
//! ```text
//! phases ──plan──▶ commands ──environments──▶ outcomes ──settle──▶ outcomes, phases
//!                                                   (SAME_STEP)      │ rows that ended
//!                    outcomes, phases ◀──settle_resets── resets ◀──plan_resets
//! ```
//!
//! Rows may be settled all together, or one by one with [`Autoreset::settle_row`]. A phase is the
//! byte of the command that the next step gives to its row, so in `NEXT_STEP` and `SAME_STEP` a
//! plan is a copy of the phases; only `DISABLED` changes the command of rows that are over.
//!
//! # Rules
//!
//! [`Rules`] are independent of the mode: a limit of steps, whether terminations count, how often a
//! step repeats its action, and where rows begin in their first episodes. A step that repeats its
//! action is several rounds of the same commands; [`Autoreset::settle_repeated`] takes the rows that
//! are over out of the next round, and the last round of each row is settled as ever.
//!
//! # Failures
//!
//! The driver of a row whose environment failed calls [`Autoreset::fail`] and settles the row with
//! [`RowCommand::Show`]. If it replaces the failed environment instead, the step counts as truncated:
//! its outcome is [`Transition::CUT`](cartwheel_core::Transition::CUT), and everything after it is as usual.
//!
//! Source: Gymnasium 1.4.0, `gymnasium/vector/{sync,async}_vector_env.py`; the differences are
//! listed in `docs/gymnasium-differences.md`.

mod episode_rules;
mod machine;
mod outcomes;
mod row_command;

pub use cartwheel_core::{AutoresetMode, OnDone};
pub use episode_rules::{Rules, mixed};
pub use machine::{Autoreset, SavedRow};
pub use outcomes::Outcomes;
pub use row_command::{Refusal, RowCommand, restarted};
