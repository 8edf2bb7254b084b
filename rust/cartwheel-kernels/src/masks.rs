//! Masks of actions of environments with several agents.

/// The masks of one agent in a batch.
#[derive(Debug, Clone, Copy)]
pub struct ShownMasks<'a> {
    /// The masks of its rows, `[rows, agents, actions]`; every byte but zero is true.
    pub masks: &'a [u8],
    /// The number of agents.
    pub agents: usize,
    /// The place of the agent among them.
    pub place: usize,
    /// Which rows show a mask of it.
    pub is_shown: &'a [u8],
}

/// Keeps the masks of one agent that a batch shows.
///
/// An agent whose next action is ignored may take every action, and so may one that shows a mask
/// without any. Other bytes that are written are those of the masks, as 0 and 1.
///
/// # Arguments
///
/// * `known`: the masks of all environments, `[environments, actions]`.
/// * `actions`: the length of a mask, at least 1.
/// * `rows`: the environment of each row of the batch.
/// * `shown`: its masks; `None` if no row has one.
/// * `is_ignored`: in which rows the next action has no effect.
/// * `replaces`: whether rows without a mask may take every action from now on; otherwise they keep
///   theirs.
///
/// # Panics
///
/// When an environment does not exist, or an array has fewer rows than the batch.
pub fn keep_masks(
    known: &mut [u8],
    actions: usize,
    rows: impl Iterator<Item = usize>,
    shown: Option<ShownMasks<'_>>,
    is_ignored: &[u8],
    replaces: bool,
) {
    for (at, row) in rows.enumerate() {
        let kept = &mut known[row * actions..][..actions];
        if is_ignored[at] != 0 {
            kept.fill(1);
            continue;
        }
        match shown {
            Some(ShownMasks { masks, agents, place, is_shown }) if is_shown[at] != 0 => {
                let mask = &masks[(at * agents + place) * actions..][..actions];
                let mut any = 0;
                for (kept, &allowed) in kept.iter_mut().zip(mask) {
                    *kept = u8::from(allowed != 0);
                    any |= *kept;
                }
                if any == 0 {
                    kept.fill(1);
                }
            }
            _ if replaces => kept.fill(1),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ShownMasks, keep_masks};

    #[test]
    fn masks_of_a_batch_are_kept_where_they_count() {
        // Four rows of two agents and three actions; the second agent allows the action 1, then
        // none, then the action 2.
        let masks = [9, 9, 9, 0, 2, 0, 9, 9, 9, 0, 0, 0, 9, 9, 9, 0, 0, 1, 9, 9, 9, 0, 0, 1];
        let shown = ShownMasks { masks: &masks, agents: 2, place: 1, is_shown: &[1, 1, 1, 0] };
        for (replaces, last) in [(false, [5; 3]), (true, [1; 3])] {
            let mut known = [5; 15];
            let rows = [3, 0, 1, 4].into_iter();
            keep_masks(&mut known, 3, rows, Some(shown), &[0, 0, 1, 0], replaces);
            assert_eq!(known[9..12], [0, 1, 0]);
            assert_eq!(known[..3], [1; 3], "none is allowed");
            assert_eq!(known[3..6], [1; 3], "it is ignored");
            assert_eq!(known[6..9], [5; 3], "it is not in the batch");
            assert_eq!(known[12..], last, "it shows none");
        }
    }

    #[test]
    fn rows_of_a_batch_without_masks_are_kept_or_replaced() {
        let mut known = [0; 6];
        keep_masks(&mut known, 3, 0..2, None, &[0, 1], false);
        assert_eq!(known, [0, 0, 0, 1, 1, 1]);
        keep_masks(&mut known, 3, 0..2, None, &[0, 0], true);
        assert_eq!(known, [1; 6]);
    }
}
