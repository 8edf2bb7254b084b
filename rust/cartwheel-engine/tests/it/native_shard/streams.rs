//! Random number streams and states of rows.

use super::*;

#[test]
fn a_state_restores_state_stream_and_phase_into_any_row() {
    let mut envs = Envs::new(&recipe(), 2, 0, limited(AutoresetMode::NextStep, 4));
    envs.seed(8);
    envs.step(&[0, 8]).unwrap();
    let saved = envs.save();
    let future = |envs: &mut Envs| -> Vec<Vec<u8>> {
        (0..20).map(|_| envs.step(&[0, 0]).unwrap().everything()).collect()
    };
    let expected = future(&mut envs);
    let of = |rows: [usize; 2]| rows.map(|row| Some(saved[row].clone()));
    let restored = envs.restore(&recipe(), &of([0, 1]));
    assert_eq!(restored.integers(0)[1], 0);
    assert!(restored.terminations()[1], "it is still over");
    let again = future(&mut envs);
    // The state contains the number of resets, so infos are equal too.
    assert!(again == expected);
    envs.restore(&recipe(), &of([1, 0]));
    let swapped: Vec<_> = (0..20).map(|_| envs.step(&[0, 0]).unwrap().rewards()).collect();
    envs.restore(&recipe(), &of([0, 1]));
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
fn rows_continue_with_streams_that_are_set_and_states_keep_their_seeds() {
    let mut envs = Envs::new(&recipe(), 2, 0, settings(AutoresetMode::SameStep));
    envs.seed(1);
    let saved = envs.save();
    let before = streams(&mut envs);
    let set = Stream { seed: Seed::Unknown, at: Rng::from_seed(30).state() };
    let all = vec![set.clone(), set.clone()];
    assert!(matches!(envs.ask(Request::SetStreams(all.clone())), Ok(Answer::Done)));
    assert_eq!(streams(&mut envs), all);
    let mut rng = Rng::from_seed(30);
    for _ in 0..3 {
        assert_eq!(envs.step(&[8, 8]).unwrap().integers(0), [rng.integers(2..6); 2]);
    }
    envs.restore(&recipe(), &saved.into_iter().map(Some).collect::<Vec<_>>());
    assert_eq!(streams(&mut envs), before);
}
