//! A step through the table allocates nothing.
#![expect(unsafe_code, reason = "a global allocator is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use cartwheel::Rng;
use cartwheel_abi as abi;
use cartwheel_envs::PLUGIN;

use crate::support::{HostKind, HostRows, find, ids};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const ROWS: usize = 16;
const STEPS: usize = 1100;

#[test]
fn a_step_allocates_nothing() {
    for (id, ..) in ids(&PLUGIN) {
        let kind = HostKind::with_defaults(find(&PLUGIN, &id), "").expect("valid options");
        let mut rows = HostRows::new(&kind, ROWS).expect("environments");
        let (mut rng, mut elapsed) = (Rng::from_seed(1), vec![0; ROWS]);
        rows.all(abi::RESET);
        rows.infos.reserve(1 << 16);
        let mut resets = 0;
        let (mut batch, mut count) = (rows.batch(), 0);
        for _ in 0..STEPS {
            rows.actions.store(0, &kind.spaces.action.sample(0, ROWS, &mut rng));
            rows.plan(&mut elapsed, kind.table.max_episode_steps);
            resets += usize::from(rows.commands.contains(&abi::RESET));
            let before = ALLOCATIONS.get();
            let ended = rows.run_batch(&mut batch);
            count += ALLOCATIONS.get() - before;
            assert_eq!(ended, abi::OK);
            rows.infos.clear();
        }
        assert_eq!(count, 0, "{id}");
        assert!(resets > 0 || id == "Null-v0", "{id} ends no episode");
    }
}
