//! Random number streams and snapshots of rows.

use super::*;

#[test]
fn a_snapshot_restores_state_stream_and_phase_into_any_row() {
    let mut envs = Envs::new(&recipe(), 2, 0, limited(AutoresetMode::NextStep, 4));
    envs.seed(8);
    envs.step(&[0, 8]).unwrap();
    let Ok(Answer::Snapshots(saved)) = envs.ask(Request::Save) else { panic!("snapshots") };
    let future = |envs: &mut Envs| -> Vec<Vec<u8>> {
        (0..20).map(|_| envs.step(&[0, 0]).unwrap().everything()).collect()
    };
    let expected = future(&mut envs);
    let how = |rows: [usize; 2]| rows.map(|row| RowReset::Restore(saved[row].clone())).to_vec();
    let restored = envs.reset(how([0, 1]), None);
    assert_eq!(restored.integers(0)[1], 0);
    assert!(restored.terminations()[1], "it is still over");
    let again = future(&mut envs);
    // The state contains the number of resets, so infos are equal too.
    assert!(again == expected);
    envs.reset(how([1, 0]), None);
    let swapped: Vec<_> = (0..20).map(|_| envs.step(&[0, 0]).unwrap().rewards()).collect();
    envs.reset(how([0, 1]), None);
    let straight: Vec<_> = (0..20).map(|_| envs.step(&[0, 0]).unwrap().rewards()).collect();
    let mirrored: Vec<_> = straight.iter().map(|rewards| vec![rewards[1], rewards[0]]).collect();
    assert_eq!(swapped, mirrored);
}

fn streams(envs: &mut Envs) -> Vec<Stream> {
    let Ok(Answer::Streams(streams)) = envs.ask(Request::Streams) else { panic!("streams") };
    streams
}

#[test]
fn streams_report_their_seeds_and_their_states() {
    let mut envs = Envs::new(&recipe(), 3, 0, settings(AutoresetMode::SameStep));
    let unforeseen = streams(&mut envs);
    let Seed::Number(seed) = unforeseen[1].seed else { panic!("128 bits") };
    assert_eq!(unforeseen[1].at, Rng::from_wide_seed(seed).state());
    assert_ne!(unforeseen[1], unforeseen[2]);
    let words = vec![1, 2, 3, 4, 5];
    let how = vec![RowReset::Seed(7), RowReset::Continue, RowReset::WideSeed(words.clone())];
    envs.reset(how, None);
    let now = streams(&mut envs);
    let mut expected = [Rng::from_seed(7), Rng::from_wide_seed(seed), Rng::from_seed_words(&words)];
    for rng in &mut expected {
        rng.integers(2_i64..6); // what a reset draws
    }
    assert_eq!(
        now.iter().map(|stream| stream.at).collect::<Vec<_>>(),
        expected.map(|rng| rng.state())
    );
    let seeds: Vec<_> = now.into_iter().map(|stream| stream.seed).collect();
    assert_eq!(seeds, [Seed::Number(7), Seed::Number(seed), Seed::Words(words)]);
}

#[test]
fn rows_continue_with_streams_that_are_set_and_snapshots_keep_their_seeds() {
    let mut envs = Envs::new(&recipe(), 2, 0, settings(AutoresetMode::SameStep));
    envs.seed(1);
    let Ok(Answer::Snapshots(saved)) = envs.ask(Request::Save) else { panic!("snapshots") };
    let before = streams(&mut envs);
    let set = Stream { seed: Seed::Unknown, at: Rng::from_seed(30).state() };
    let all = vec![set.clone(), set.clone()];
    assert!(matches!(envs.ask(Request::SetStreams(all.clone())), Ok(Answer::Done)));
    assert_eq!(streams(&mut envs), all);
    let mut rng = Rng::from_seed(30);
    for _ in 0..3 {
        assert_eq!(envs.step(&[8, 8]).unwrap().integers(0), [rng.integers(2..6); 2]);
    }
    envs.reset(saved.into_iter().map(RowReset::Restore).collect(), None);
    assert_eq!(streams(&mut envs), before);
}
