"""Promises of native environments that are not kept yet, each with a test that says so.

A test named here must fail; once it passes, the run fails until the name is taken out.
"""

_ROWS = (
    "a row that is left alone is observed anew, so a row never reset or changed by set_attr shows"
)
GAPS = {
    **{
        f"test_a_value_that_does_not_fit_is_refused_in_every_row[{case}-ValueError-expected]": (
            "the state `s` is not checked"
        )
        for case in ("FrozenLake-v1-s-16", "CliffWalking-v1-s--1", "CliffWalking-v1-s-48")
    },
    **{
        f"test_rows_that_were_never_reset_show_zeros_after_a_partial_reset[{env_id}]": (
            f"{_ROWS} its start"
        )
        for env_id in ("Pendulum-v1", "Acrobot-v1", "CliffWalking-v1", "CliffWalkingSlippery-v1")
    },
    **{
        f"test_a_row_outside_the_mask_repeats_its_observation_whatever_was_set[{case}]": (
            f"{_ROWS} its state"
        )
        for case in ("Pendulum-v1-state-value0", "CliffWalking-v1-s-5")
    },
    **{
        f"test_options_that_gymnasium_refuses_are_refused_before_any_row_is_reset[{case}]": (
            "reset options are looser than Gymnasium's"
        )
        for case in ("CartPole-v1-{'low': None}", "Pendulum-v1-{'x_init': -1.0}")
    },
}
