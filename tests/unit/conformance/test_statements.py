"""What users of other libraries hit, as statements of right behaviour, and the tests that make each of them true here.

The numbers are those of the list that the trainer was built against. A statement whose test is renamed, moved or taken
away fails here, so none of them can be lost.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
OBJECTIVES, METHODS, MODELS, TRAIN = "unit/objectives/", "unit/methods/", "unit/models/", "unit/train/"
STATEMENTS: dict[int, tuple[str, tuple[str, ...]]] = {
    1: (
        "every accepted number changes the loss or is refused",
        (
            OBJECTIVES + "test_policy_objectives.py::test_every_number_changes_the_gradient_or_is_refused",
            OBJECTIVES + "test_divergence.py::test_every_knob_changes_the_gradient",
            OBJECTIVES + "test_preference.py::test_every_knob_changes_the_gradient",
            METHODS + "test_no_dead_option.py::test_a_number_changes_what_is_trained_on",
            METHODS + "test_credit.py::test_every_number_changes_what_is_trained_on",
            METHODS + "test_evolution.py::test_every_number_of_es_is_swept",
            MODELS + "adapter/test_no_dead_option.py::test_a_number_changes_what_is_trained",
            TRAIN + "test_no_dead_option.py::test_a_number_changes_what_happens",
        ),
    ),
    2: (
        "a named objective is its definition",
        (
            "unit/conformance/test_suite.py::test_ours_is_what_the_paper_says",
            OBJECTIVES + "test_policy_objectives.py::test_value_and_gradient_equal_the_padded_formula",
        ),
    ),
    3: (
        "distillation divides by the tokens that it trains",
        (METHODS + "test_distillation.py::test_the_divergence_counts_the_tokens_that_were_sampled",),
    ),
    4: (
        "the temperature of a distillation is honoured",
        (
            OBJECTIVES + "test_divergence.py::test_against_torch_kl_div",
            OBJECTIVES + "test_divergence.py::test_every_knob_changes_the_gradient",
        ),
    ),
    5: (
        "a self-teacher starts equal to the student, from the weights in memory",
        (
            TRAIN + "test_teachers.py::test_a_self_teacher_starts_equal_to_the_student",
            TRAIN + "test_teachers.py::test_copies_are_made_once_and_from_the_live_weights",
        ),
    ),
    6: (
        "resume inside a buffer is exact",
        (TRAIN + "test_resume.py::test_resume_inside_a_rollout_buffer_is_bit_exact",),
    ),
    7: (
        "an empty completion is a valid sample with zero loss",
        (
            OBJECTIVES + "test_policy_gradient.py::test_an_empty_completion_counts_and_adds_nothing",
            OBJECTIVES + "test_advantages.py::test_empty_completions_are_valid_samples",
        ),
    ),
    8: (
        "masked-out samples move no baseline",
        (
            OBJECTIVES + "test_advantages.py::test_a_missing_reward_moves_no_other",
            METHODS + "test_credit.py::test_long_completions_pay_or_are_left_out",
        ),
    ),
    9: (
        "a group of one has no advantage",
        (OBJECTIVES + "test_advantages.py::test_a_group_without_contrast_gives_exactly_zero",),
    ),
    10: (
        "a batch that is all masked gives 0 with a finite gradient",
        (
            OBJECTIVES + "test_policy_objectives.py::test_all_masked_and_all_empty_steps_give_zero",
            OBJECTIVES + "test_preference.py::test_pairs_masked_by_weight_give_zero",
            OBJECTIVES + "test_divergence.py::test_weight_zero_is_masked",
        ),
    ),
    11: (
        "sum and count use the same mask",
        (
            OBJECTIVES + "test_policy_objectives.py::test_weight_scales_and_masks_an_item",
            OBJECTIVES + "test_cross_entropy.py::test_weight_zero_is_masked_in_sum_and_count",
        ),
    ),
    12: (
        "micro-batches, accumulation, packing and workers change no update",
        (
            OBJECTIVES + "test_policy_packing.py::test_packing_changes_nothing",
            OBJECTIVES + "test_policy_objectives.py::test_splitting_a_step_changes_nothing",
            TRAIN + "test_loop.py::test_token_budget_changes_no_weight",
            TRAIN + "test_identities.py::test_one_forest_equals_a_forest_per_unit",
            TRAIN + "test_workers.py::test_two_workers_equal_one",
        ),
    ),
    13: (
        "a reward that is NaN or None poisons no sibling",
        (
            OBJECTIVES + "test_advantages.py::test_a_missing_reward_moves_no_other",
            METHODS + "test_credit.py::test_a_broken_verifier_is_left_out",
        ),
    ),
    14: (
        "the ids in the loss are the ids that were sampled",
        (
            METHODS + "test_composer.py::test_the_ids_that_are_scored_are_the_ids_that_were_sampled",
            METHODS + "test_self_distillation.py::test_teacher_and_student_score_the_tokens_that_were_sampled",
            MODELS + "test_call_forms.py::test_the_next_prompt_goes_on_where_a_call_ended",
        ),
    ),
    15: (
        "every declared end token ends a completion",
        (
            MODELS + "test_sampler.py::test_every_stop_token_ends_a_sample_and_is_kept",
            MODELS + "test_chat_templates.py::test_the_family_s_mark_ends_an_answer_and_nothing_else_stops",
        ),
    ),
    16: (
        "the stop token is trained, and nothing to train is an error",
        (
            METHODS + "test_imitation.py::test_the_last_answer_alone_with_its_stop_token",
            METHODS + "test_imitation.py::test_a_row_in_which_nothing_is_scored_is_an_error",
            METHODS + "test_imitation.py::test_an_answer_that_would_never_stop_is_an_error",
        ),
    ),
    17: (
        "what is saved has the template that it was trained with",
        (MODELS + "test_policy.py::test_the_template_travels_with_the_weights",),
    ),
    18: (
        "a hint is never cut: its context is whole or the row is dropped and counted",
        (
            METHODS + "test_layout.py::test_student_and_teacher_score_the_same_tokens_in_two_contexts",
            METHODS + "test_layout.py::test_rows_that_are_too_long_or_say_nothing_are_counted",
        ),
    ),
    19: (
        "truncated sampling has the same support on both sides or is refused",
        (METHODS + "test_fresh_engine.py::test_truncated_and_tempered_sampling_is_refused",),
    ),
    20: (
        "an adapter on disk has learned something and comes back the same",
        (
            MODELS + "adapter/test_variants.py::test_untrained_it_is_not_saved",
            MODELS + "adapter/test_variants.py::test_another_process_gets_the_same_logits",
        ),
    ),
    21: (
        "reference and policy are one at step 0, with a continued adapter too",
        (
            METHODS + "test_first_step.py::test_with_a_new_adapter",
            METHODS + "test_first_step.py::test_with_an_adapter_that_is_trained_further",
        ),
    ),
    22: (
        "documents that are packed do not see each other",
        (
            "unit/core/test_forest.py::test_mask_is_ancestors_and_self",
            MODELS + "test_families.py::test_tree_equals_branch_by_branch",
        ),
    ),
    23: (
        "a loss of 0 is explained",
        (
            TRAIN + "test_loop.py::test_equal_rewards_stop_the_run_after_patience_and_say_what_to_do",
            TRAIN + "test_loop.py::test_metrics_and_result",
        ),
    ),
    24: (
        "results of tools keep the order of their calls",
        (MODELS + "test_chat_templates.py::test_results_keep_the_order_of_their_calls",),
    ),
    25: (
        "other losses can be mixed into reinforcement learning",
        (
            TRAIN + "test_loop.py::test_every_channel_learns_its_own_units",
            TRAIN + "test_identities.py::test_other_weights_0_equal_the_channel_alone_bit_for_bit",
        ),
    ),
    26: ("everything installs together", ("test_constraints.py::test_every_dependency_has_a_pin_that_it_accepts",)),
    27: (
        "what a preference does about length is said",
        (OBJECTIVES + "test_preference.py::test_averages_over_tokens_take_the_length_out",),
    ),
    28: (
        "peak memory does not grow with vocabulary times tokens",
        (OBJECTIVES + "test_tiles.py::test_memory_is_flat_in_rows_and_vocabulary",),
    ),
    29: (
        "a misspelt setting fails, and errors keep their cause",
        (
            "unit/run/test_config.py::test_a_mistake_in_a_recipe_is_told",
            TRAIN + "test_loop.py::test_a_loss_that_is_no_number_names_the_channel_and_saves_nothing",
        ),
    ),
}


@cache
def names_in(path: str) -> set[str]:
    tree = ast.parse((TESTS / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def test_there_are_29() -> None:
    assert list(STATEMENTS) == list(range(1, 30))


@pytest.mark.parametrize("number", STATEMENTS)
def test_a_statement_has_its_tests(number: int) -> None:
    statement, tests = STATEMENTS[number]
    for test in tests:
        path, _, name = test.partition("::")
        assert name in names_in(path), f"{statement}: {test} is gone"
