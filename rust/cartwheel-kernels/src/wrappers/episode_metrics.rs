//! Metrics of the running episodes, in every step, and of those that have ended.

use super::finished::{Archive, Finished, Flags};
use super::places::{At, Places, RESET, StepResults};
use super::running::Running;

/// Reports of environments about episodes, in any step and in the present one.
#[derive(Debug, Clone)]
pub struct Reports {
    /// 1 where a step of the episode reported it.
    once: Vec<u8>,
    /// 1 where the present step did.
    at_end: Vec<u8>,
    /// The values of the odd places before the batch.
    before: Vec<(u8, u8)>,
    /// Whether anything was ever reported.
    is_used: bool,
}

impl Reports {
    /// Nothing was reported.
    fn new(num_envs: usize) -> Self {
        let (once, at_end) = (vec![0; num_envs], vec![0; num_envs]);
        Self { once, at_end, before: Vec::new(), is_used: false }
    }

    /// 1 for each row of which a step of the episode reported it.
    pub fn once(&self) -> &[u8] {
        &self.once
    }

    /// 1 for each row of which the last step did.
    pub fn at_end(&self) -> &[u8] {
        &self.at_end
    }

    /// Whether a step of the episode of a row reported it, and whether the last one did.
    fn of(&self, row: usize) -> [bool; 2] {
        if self.is_used { [self.once[row] != 0, self.at_end[row] != 0] } else { [false; 2] }
    }

    /// Goes on with the reports of another run.
    ///
    /// # Panics
    ///
    /// When they are not those of as many rows.
    pub fn resume(&mut self, once: Vec<u8>, at_end: Vec<u8>) {
        assert_eq!([once.len(), at_end.len()], [self.once.len(); 2], "rows");
        (self.once, self.at_end, self.is_used) = (once, at_end, true);
    }

    /// Adds what a step said, place by place; `None`: nothing.
    fn step(&mut self, places: Places<'_>, running: &Running, said: Option<&[u8]>) {
        self.is_used |= said.is_some();
        if !self.is_used {
            return;
        }
        let Self { once, at_end, before, .. } = self;
        before.clear();
        before.extend(running.odd.iter().map(|odd| (once[odd.at.row], at_end[odd.at.row])));
        match (places.rows(), said) {
            (None, None) => at_end.fill(0),
            (None, Some(said)) => {
                once.iter_mut().zip(said).for_each(|(once, said)| *once |= u8::from(*said != 0));
                at_end.iter_mut().zip(said).for_each(|(now, said)| *now = u8::from(*said != 0));
            }
            (Some(rows), said) => {
                for (place, &row) in rows.iter().enumerate() {
                    at_end[row] = said.map_or(0, |said| u8::from(said[place] != 0));
                    once[row] |= at_end[row];
                }
            }
        }
        for (odd, &(was_once, was_at_end)) in running.odd.iter().zip(&*before) {
            let At { place, row } = odd.at;
            let kept = u8::from(odd.keeps);
            if odd.counts() {
                let said = said.map_or(0, |said| u8::from(said[place] != 0));
                (once[row], at_end[row]) = ((was_once & kept) | said, said);
            } else {
                (once[row], at_end[row]) = (was_once & kept, was_at_end & kept);
            }
        }
    }
}

/// Returns, lengths and reports of running episodes, and an archive of those that have ended.
#[derive(Debug, Clone)]
pub struct EpisodeMetrics {
    /// Returns and lengths.
    pub running: Running,
    /// Reports of success, and of failure.
    pub reports: [Reports; 2],
    /// The seed of the reset that began the episode of each row, or -1.
    pub seeds: Vec<i64>,
    /// Episodes that have ended.
    pub archive: Archive,
    /// Whether episodes that end are added to the archive.
    pub updates: bool,
}

impl EpisodeMetrics {
    /// No row has had a step.
    pub fn new(num_envs: usize, is_same_step: bool, archive: Archive) -> Self {
        Self {
            running: Running::new(num_envs, is_same_step),
            reports: [Reports::new(num_envs), Reports::new(num_envs)],
            seeds: vec![-1; num_envs],
            archive,
            updates: true,
        }
    }

    /// A reset returned. `seeds` has one for each place, or -1; `None`: no place was given any.
    ///
    /// # Panics
    ///
    /// When `seeds` has another length.
    pub fn begin(&mut self, places: Places<'_>, seeds: Option<&[i64]>) {
        self.running.begin(places);
        for reports in &mut self.reports {
            reports.step(places, &self.running, None);
        }
        self.seed(seeds);
    }

    /// Adds a step, in which places said success and failure (`None`: no place did). `seeds` are
    /// those with which the episodes began that begin with this step, as for [`begin`](Self::begin).
    /// Returns how many complete episodes ended.
    ///
    /// # Panics
    ///
    /// As for [`Running::step`]; when a slice has another length.
    pub fn step(
        &mut self,
        results: &StepResults<'_>,
        said: [Option<&[u8]>; 2],
        seeds: Option<&[i64]>,
    ) -> usize {
        let ends = self.running.step(results);
        let StepResults { places, terminations, truncations, .. } = *results;
        for (reports, said) in self.reports.iter_mut().zip(said) {
            reports.step(places, &self.running, said);
        }
        let [success, fail] = &self.reports;
        let added = if self.updates { &self.running.ended[..] } else { &[] };
        for &At { place, row } in added {
            let ([once, at_end], [fails_once, fails_at_end]) = (success.of(row), fail.of(row));
            let (terminated, truncated) = (terminations[place] != 0, truncations[place] != 0);
            let flags = [once, at_end, fails_once, fails_at_end, terminated, truncated];
            self.archive.add(Finished {
                total: self.running.returns()[row],
                length: self.running.length(row),
                seed: self.seeds[row],
                env_index: u32::try_from(row).expect("rows are fewer"),
                flags: Flags::new(flags),
            });
        }
        // In `SAME_STEP` the next episode has begun; in the other modes a place that ended one has
        // no seed.
        for at in &self.running.over {
            self.seeds[at.row] = seeds.map_or(-1, |seeds| seeds[at.place]);
        }
        self.seed(seeds);
        ends.complete
    }

    /// Notes the seeds of the rows that were reset.
    fn seed(&mut self, given: Option<&[i64]>) {
        for odd in self.running.odd.iter().filter(|odd| odd.kind == RESET) {
            self.seeds[odd.at.row] = given.map_or(-1, |given| given[odd.at.place]);
        }
    }
}
