//! Metrics of the running episodes, in every step, and of those that have ended.

use super::finished::{Archive, Finished, mean_reward};
use super::kind::RESET;
use super::running::{Places, Running, each_place};

/// What environments report about episodes, in any step and in the present one.
#[derive(Debug, Clone)]
pub struct Reports {
    /// 1 where a step of the episode reported it.
    pub once: Vec<u8>,
    /// 1 where the present step did.
    pub at_end: Vec<u8>,
}

impl Reports {
    /// Nothing was reported.
    fn new(num_envs: usize) -> Self {
        Self { once: vec![0; num_envs], at_end: vec![0; num_envs] }
    }

    /// Adds what a step said, place by place; `None`: nothing.
    fn step(&mut self, rows: Option<&[usize]>, running: &Running, said: Option<&[u8]>) {
        let Running { keeps, counts, .. } = running;
        let Self { once, at_end } = self;
        if let Some(said) = said {
            assert_eq!(said.len(), counts.len(), "reports");
        }
        let said = |place: usize| said.map_or(0, |said| u8::from(said[place] != 0)) & counts[place];
        each_place(rows, counts.len(), |place, row| {
            once[row] = (once[row] & keeps[place]) | said(place);
            at_end[row] = (at_end[row] & keeps[place] & (1 - counts[place])) | said(place);
        });
    }
}

/// Returns, lengths and reports of running episodes, and an archive of those that have ended.
#[derive(Debug, Clone)]
pub struct EpisodeMetrics {
    running: Running,
    reports: [Reports; 2],
    /// The seed of the reset that began the episode of each row, or -1.
    seeds: Vec<i64>,
    /// Episodes that have ended.
    pub archive: Archive,
}

impl EpisodeMetrics {
    /// No row has had a step.
    pub fn new(num_envs: usize, is_same_step: bool, archive: Archive) -> Self {
        Self {
            running: Running::new(num_envs, is_same_step),
            reports: [Reports::new(num_envs), Reports::new(num_envs)],
            seeds: vec![-1; num_envs],
            archive,
        }
    }

    /// Returns and lengths.
    pub fn running(&self) -> &Running {
        &self.running
    }

    /// The same, to be set to what they were in another run.
    pub fn running_mut(&mut self) -> &mut Running {
        &mut self.running
    }

    /// What was reported of success, and of failure.
    pub fn reports(&self) -> &[Reports; 2] {
        &self.reports
    }

    /// The same, to be set.
    pub fn reports_mut(&mut self) -> &mut [Reports; 2] {
        &mut self.reports
    }

    /// The seed of the reset that began the episode of each row, or -1.
    pub fn seeds(&self) -> &[i64] {
        &self.seeds
    }

    /// The same, to be set.
    pub fn seeds_mut(&mut self) -> &mut [i64] {
        &mut self.seeds
    }

    /// A reset returned. `seeds` has one for each place, or -1; `None`: no place was given any.
    ///
    /// # Panics
    ///
    /// As for [`Running::begin`]; when `seeds` has another length.
    pub fn begin(&mut self, rows: Option<&[usize]>, kinds: &[u8], seeds: Option<&[i64]>) {
        self.running.begin(rows, kinds);
        self.reports.iter_mut().for_each(|reports| reports.step(rows, &self.running, None));
        self.seed(rows, kinds, seeds);
    }

    /// Adds a step, in which places said success and failure (`None`: nobody did). Returns how many
    /// complete episodes ended.
    ///
    /// # Panics
    ///
    /// As for [`Running::step`]; when a slice has another length.
    pub fn step(
        &mut self,
        places: &Places<'_>,
        said: [Option<&[u8]>; 2],
        seeds: Option<&[i64]>,
    ) -> usize {
        let ends = self.running.step(places);
        let Places { rows, kinds, terminations, truncations, .. } = *places;
        for (reports, said) in self.reports.iter_mut().zip(said) {
            reports.step(rows, &self.running, said);
        }
        if ends.complete > 0 {
            let [success, fail] = &self.reports;
            let Running { returns, lengths, ended, .. } = &self.running;
            each_place(rows, ended.len(), |place, row| {
                if ended[place] == 1 {
                    let flags = [&success.once, &success.at_end, &fail.once, &fail.at_end];
                    self.archive.add(Finished {
                        total: returns[row],
                        length: lengths[row],
                        flags: flags.map(|flags| flags[row] == 1),
                        env_index: i64::try_from(row).expect("rows are fewer"),
                        episode_id: 0,
                        seed: self.seeds[row],
                        terminated: terminations[place] != 0,
                        truncated: truncations[place] != 0,
                    });
                }
            });
        }
        if ends.complete + ends.dropped > 0 {
            // Whatever begins now was given no seed yet.
            let seeds = &mut self.seeds;
            each_place(rows, kinds.len(), |place, row| {
                let over = (terminations[place] | truncations[place]) != 0;
                seeds[row] = if over { -1 } else { seeds[row] };
            });
        }
        if seeds.is_some() || kinds.contains(&RESET) {
            self.seed(rows, kinds, seeds);
        }
        ends.complete
    }

    fn seed(&mut self, rows: Option<&[usize]>, kinds: &[u8], given: Option<&[i64]>) {
        let seeds = &mut self.seeds;
        each_place(rows, kinds.len(), |place, row| {
            if kinds[place] == RESET {
                seeds[row] = given.map_or(-1, |given| given[place]);
            }
        });
    }

    /// The mean reward of one row's episode so far.
    ///
    /// # Panics
    ///
    /// When the row does not exist.
    pub fn reward(&self, row: usize) -> f64 {
        mean_reward(self.running.returns[row], self.running.lengths[row])
    }
}
