//! Rows of scripted environments, which record the calls that they get.

use cartwheel_engine::Transition;

/// Probabilities, of 256.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chances {
    pub(crate) terminates: u8,
    pub(crate) truncates: u8,
    pub(crate) step_fails: u8,
    pub(crate) reset_fails: u8,
}

/// The behavior of an environment in its n-th call.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Script {
    /// It ends its episode at step `length`, fails at step `fails_at`, and fails its first resets.
    Counts { length: u32, fails_at: u32, failing_resets: u32 },
    /// It draws lots.
    Draws { seed: u64, chances: Chances },
}

/// One environment.
#[derive(Debug, Clone)]
pub(crate) struct Scripted {
    pub(crate) script: Script,
    /// Times that a failed environment may be replaced by a new one.
    pub(crate) replacements: u32,
    /// Steps since the last reset.
    pub(crate) now: u32,
    calls: u64,
    log: Vec<String>,
}

impl Scripted {
    pub(crate) fn new(script: Script, replacements: u32) -> Self {
        Self { script, replacements, now: 0, calls: 0, log: Vec::new() }
    }

    /// An environment whose episodes have `length` steps.
    pub(crate) fn counts(length: u32) -> Self {
        Self::new(Script::Counts { length, fails_at: 0, failing_resets: 0 }, 0)
    }

    /// The calls since the last time.
    pub(crate) fn taken(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    pub(crate) fn step(&mut self) -> Result<Transition, String> {
        self.now += 1;
        let lots = self.draw();
        self.log.push("step".to_owned());
        let (fails, terminated, truncated) = match self.script {
            Script::Counts { length, fails_at, .. } => {
                (self.now == fails_at, self.now == length, false)
            }
            Script::Draws { chances, .. } => (
                lots[0] < chances.step_fails,
                lots[1] < chances.terminates,
                lots[2] < chances.truncates,
            ),
        };
        if fails {
            return Err(format!("step {}", self.now));
        }
        Ok(Transition { reward: f64::from(self.now), terminated, truncated })
    }

    pub(crate) fn reset(&mut self) -> Result<(), String> {
        let lots = self.draw();
        self.log.push("reset".to_owned());
        let fails = match &mut self.script {
            Script::Counts { failing_resets, .. } => {
                let fails = *failing_resets > 0;
                *failing_resets = failing_resets.saturating_sub(1);
                fails
            }
            Script::Draws { chances, .. } => lots[3] < chances.reset_fails,
        };
        if fails {
            return Err("reset".to_owned());
        }
        self.now = 0;
        Ok(())
    }

    pub(crate) fn keep_final(&mut self) {
        self.log.push(format!("final {}", self.now));
    }

    pub(crate) fn publish(&mut self) {
        self.log.push(format!("obs {}", self.now));
    }

    pub(crate) fn repeat(&mut self) {
        self.log.push(format!("again {}", self.now));
    }

    /// Replaces the environment that failed so, if that is allowed once more.
    pub(crate) fn replace(&mut self, failure: String) -> Result<(), String> {
        if self.replacements == 0 {
            return Err(failure);
        }
        self.replacements -= 1;
        self.log.push(format!("replace: {failure}"));
        if let Script::Counts { fails_at, .. } = &mut self.script {
            *fails_at = 0;
        }
        Ok(())
    }

    /// Four lots for this call: the bytes of a hash (splitmix64) of the number of the call.
    fn draw(&mut self) -> [u8; 4] {
        self.calls += 1;
        let Script::Draws { seed, .. } = self.script else { return [0; 4] };
        let mut hash = seed.wrapping_add(self.calls.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let [first, second, third, fourth, ..] = (hash ^ (hash >> 31)).to_le_bytes();
        [first, second, third, fourth]
    }
}
