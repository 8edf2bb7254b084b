//! Blackjack: come closer to 21 than the dealer, without exceeding it.
//!
//! Source: R. S. Sutton, A. G. Barto, "Reinforcement Learning: An Introduction", example 5.1, as in
//! Gymnasium 1.4.0, `toy_text/blackjack.py`. Cards are drawn from an endless deck.
//!
//! | | |
//! |---|---|
//! | action | 0: stick, 1: hit |
//! | observation | the player's sum, the dealer's card (1 is an ace), whether the player has a usable ace |
//! | reward | 1 for a win, 0 for a draw, −1 for a loss; 1.5 for a win with a natural, if `natural` |
//! | terminates | when the player sticks or exceeds 21 |

use std::sync::Arc;

use cartwheel::{
    Env, Error, Failure, NoOptions, Parameter, ParameterValue, Rng, Space, Spaces, Transition,
    options, wrong,
};

/// Jack, queen and king count ten.
const DECK: [u8; 13] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10];
/// Maximum number of cards of a hand: 21 aces and one more.
const MAX_CARDS: usize = 22;
const SUITS: [&str; 4] = ["C", "D", "H", "S"];
const TENS: [&str; 3] = ["J", "Q", "K"];
const NAMES: [&str; 10] = ["", "A", "2", "3", "4", "5", "6", "7", "8", "9"];

options! {
    /// Keywords.
    #[derive(Copy)]
    pub struct Options {
        /// Pay 1.5 for a win with an ace and a ten from the start; no effect if sab is true.
        natural: bool,
        /// The rules of Sutton and Barto: an ace and a ten from the start win unless the dealer has
        /// them too.
        sab: bool,
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Hand {
    cards: [u8; MAX_CARDS],
    count: usize,
    /// The sum with every ace counted as one.
    sum: i64,
    has_ace: bool,
}

impl Hand {
    #[inline]
    fn draw(&mut self, rng: &mut Rng) {
        self.add(*rng.choice(&DECK));
    }

    fn add(&mut self, card: u8) {
        if let Some(place) = self.cards.get_mut(self.count) {
            *place = card;
            self.count += 1;
        }
        self.sum += i64::from(card);
        self.has_ace |= card == 1;
    }

    fn pair(rng: &mut Rng) -> Self {
        let mut hand = Self::default();
        hand.draw(rng);
        hand.draw(rng);
        hand
    }

    /// Whether an ace can count as eleven.
    #[inline]
    fn usable_ace(&self) -> bool {
        self.has_ace && self.sum + 10 <= 21
    }

    #[inline]
    fn total(&self) -> i64 {
        self.sum + if self.usable_ace() { 10 } else { 0 }
    }

    /// The total, or 0 above 21.
    fn score(&self) -> i64 {
        if self.total() > 21 { 0 } else { self.total() }
    }

    fn is_natural(&self) -> bool {
        self.count == 2 && self.has_ace && self.sum == 11
    }
}

impl Parameter for Hand {
    fn get(&self) -> ParameterValue {
        let cards = self.cards[..self.count].iter();
        ParameterValue::List(cards.map(|&card| ParameterValue::Int(card.into())).collect())
    }

    fn set(&mut self, value: ParameterValue) -> Result<(), Error> {
        let mut cards: Vec<u8> = Vec::new();
        cards.set(value.clone()).map_err(|_| wrong("a list of cards", &value))?;
        let proper = |card: &u8| (1..=10).contains(card);
        if cards.is_empty() || cards.len() > MAX_CARDS || !cards.iter().all(proper) {
            return Err(wrong("1 to 22 cards from 1 to 10", &value));
        }
        *self = Self::default();
        for card in cards {
            self.add(card);
        }
        Ok(())
    }
}

/// A hand as its cards, and the sum, which may have more.
impl cartwheel::State for Hand {
    fn save(&self, state: &mut Vec<u8>) {
        self.cards[..self.count].to_vec().save(state);
        (self.sum, self.has_ace).save(state);
    }

    fn load(state: &mut &[u8]) -> Result<Self, Failure> {
        let saved: Vec<u8> = cartwheel::State::load(state)?;
        let (sum, has_ace) = cartwheel::State::load(state)?;
        let mut cards = [0; MAX_CARDS];
        let too_many = || Failure::new(format!("a hand has {} cards", saved.len()));
        cards.get_mut(..saved.len()).ok_or_else(too_many)?.copy_from_slice(&saved);
        Ok(Self { cards, count: saved.len(), sum, has_ace })
    }
}

/// Text that only rendering uses.
#[derive(Debug, Clone, Copy)]
struct Label(&'static str);

impl Parameter for Label {
    fn get(&self) -> ParameterValue {
        ParameterValue::Text(self.0.to_owned())
    }

    fn set(&mut self, value: ParameterValue) -> Result<(), Error> {
        Err(Error::BadParameter(format!("is the drawn card and cannot be set, got {value}")))
    }
}

impl cartwheel::State for Label {
    fn save(&self, state: &mut Vec<u8>) {
        self.0.to_owned().save(state);
    }

    fn load(state: &mut &[u8]) -> Result<Self, Failure> {
        let label: String = cartwheel::State::load(state)?;
        let known = SUITS.into_iter().chain(TENS).chain(NAMES).find(|known| *known == label);
        known.map(Self).ok_or_else(|| Failure::new(format!("no card is labeled {label:?}")))
    }
}

/// A table with a dealer and a player.
#[derive(Debug, Clone)]
pub struct Blackjack {
    player: Hand,
    dealer: Hand,
    suit: Label,
    card: Label,
    natural: bool,
    sab: bool,
}

impl Env for Blackjack {
    type Options = Options;
    type ResetOptions = NoOptions;
    type Action = i64;
    type Observation = (i64, i64, i64);
    type Info = ();
    type Shared = ();

    fn spaces(_: &Options, (): &()) -> Spaces {
        let observation = Space::Tuple([32, 11, 2].map(Space::discrete).to_vec());
        Spaces { observation, action: Space::discrete(2) }
    }

    fn new(options: &Options, _: &Arc<()>) -> Result<Self, Error> {
        let Options { natural, sab } = *options;
        let (player, dealer) = (Hand::default(), Hand::default());
        Ok(Self { player, dealer, suit: Label(""), card: Label(""), natural, sab })
    }

    #[inline]
    fn reset(&mut self, rng: &mut Rng, _: &NoOptions) -> Result<(), Failure> {
        self.dealer = Hand::pair(rng);
        self.player = Hand::pair(rng);
        // Only rendering shows these, but they are drawn from the same stream.
        self.suit = Label(SUITS[rng.choice_index(SUITS.len())]);
        let card = usize::from(self.dealer.cards[0]);
        self.card =
            Label(if card == 10 { TENS[rng.choice_index(TENS.len())] } else { NAMES[card] });
        Ok(())
    }

    #[inline]
    fn step(&mut self, action: i64, rng: &mut Rng) -> Result<Transition, Failure> {
        if action != 0 {
            self.player.draw(rng);
            let terminated = self.player.total() > 21;
            let reward = if terminated { -1.0 } else { 0.0 };
            return Ok(Transition { reward, terminated, truncated: false });
        }
        while self.dealer.total() < 17 {
            self.dealer.draw(rng);
        }
        let (mine, theirs) = (self.player.score(), self.dealer.score());
        let reward = f64::from(i8::from(mine > theirs) - i8::from(mine < theirs));
        let reward = match (self.sab, self.player.is_natural()) {
            (true, true) if !self.dealer.is_natural() => 1.0,
            (false, true) if self.natural && reward > 0.0 => 1.5,
            _ => reward,
        };
        Ok(Transition { reward, terminated: true, truncated: false })
    }

    #[inline]
    fn observe(&self, (sum, card, ace): (&mut i64, &mut i64, &mut i64)) {
        *sum = self.player.total();
        *card = self.dealer.cards[0].into();
        *ace = self.player.usable_ace().into();
    }

    #[inline]
    fn info(&self) {}

    cartwheel::state! { player, dealer, suit, card, natural, sab }

    cartwheel::parameters! {
        player: player,
        dealer: dealer,
        natural: natural,
        sab: sab,
        dealer_top_card_suit: suit,
        dealer_top_card_value_str: card,
    }
}
